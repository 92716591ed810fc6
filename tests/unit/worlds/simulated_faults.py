"""Calls that fail, and processes that die in the middle of one."""

import random

from muster.kube.errors import APIError, Conflict, ServerError, TooManyRequests, Unreachable


class Crash(BaseException):
    """The process that called dies here."""


class Faults:
    """Which calls fail. `share` of the writes, and a quarter of that of the reads; `crashes` are deadly."""

    def __init__(self, chance: random.Random, share: float, crashes: float) -> None:
        self.chance = chance
        self.share = share
        self.crashes = crashes

    def cease(self) -> None:
        """From now on nothing fails."""
        self.share = self.crashes = 0.0

    def before(self, verb: str) -> None:
        """Raises in place of the call."""
        if self.crashes and self.chance.random() < self.crashes:
            raise Crash
        if self.share and self.chance.random() < self.share / (4 if verb == "get" else 2):
            kinds: list[type[APIError]] = [ServerError, Unreachable, TooManyRequests]
            if verb in {"patch", "delete"}:
                kinds.append(Conflict)
            raise self.chance.choice(kinds)("injected before")

    def between(self) -> bool:
        """Whether the caller dies when half of its call was carried out."""
        return bool(self.crashes) and self.chance.random() < self.crashes

    def after(self) -> None:
        """Raises after the call was carried out: the answer was lost."""
        if self.crashes and self.chance.random() < self.crashes:
            raise Crash
        if self.share and self.chance.random() < self.share / 2:
            raise self.chance.choice([ServerError, Unreachable])("injected after")
