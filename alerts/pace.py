"""How much the owner's phone may ring, and how long the outbox waits for what."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from store.alert_queue import LEASE

MAX_BACK_OFF_S = 600.0
MANY = 20
"""As many tries as it takes to the longest back-off."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The limits of one outbox."""

    an_hour: int = 60
    """When so many alerts have gone out within an hour, the others go out bundled."""
    digest_every: timedelta = timedelta(minutes=10)
    """How long alerts are gathered for a digest, counted from the message before."""
    digest_alerts: int = 100
    """So many fit into one digest; what is left waits for the next one."""
    lease: timedelta = LEASE
    """After this long without a sign of life, a worker is taken to be dead, and its alerts are anybody's."""
    end_s: float = 5.0
    """How long a send under way may hold up the end, in seconds. Docker kills what has not ended after ten."""

    def room(self, sent: int, last: datetime | None, now: datetime) -> tuple[int, float]:
        """How many alerts the next message holds, and how long it has to wait, in seconds.

        Args:
            sent: alerts that went out within the last hour.
            last: when the last of them did.
            now: the present.
        """
        if last is None or sent < self.an_hour:
            return 1, 0.0
        return self.digest_alerts, max(0.0, (last + self.digest_every - now).total_seconds())


def back_off_s(attempts: int) -> float:
    """Seconds to wait after so many tries: twice as long each time, up to ten minutes, and never for all at once."""
    return min(MAX_BACK_OFF_S, 2.0 ** min(attempts, MANY)) * random.uniform(0.5, 1)
