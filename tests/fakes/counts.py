"""A watch that keeps what it was told."""

from __future__ import annotations


class Counts:
    """What is counted along."""

    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.stops: list[str] = []
        self.without_source = 0

    def refused(self, kind: str) -> None:
        self.refusals.append(kind)

    def finished(self, stop: str, duration_s: float) -> None:
        self.stops.append(stop)

    def unfounded(self) -> None:
        self.without_source += 1
