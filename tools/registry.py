"""The tools that the replica has: a new one is added here."""

from __future__ import annotations

from agent.toolkit import Toolkit
from alerts.outbox import Outbox
from tools.gather_user_details import gather_user_details
from tools.inform_unknown import inform_unknown


def toolkit(outbox: Outbox) -> Toolkit:
    return Toolkit(gather_user_details(outbox), inform_unknown(outbox))
