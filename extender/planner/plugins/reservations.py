"""Room that is reserved for gangs at the head of their queue: the arguments of the configuration."""

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from extender.planner.framework.registry import OwnArgument, PlainPlugin, refuse_arguments
from extender.planner.framework.reserved import ReservationMode, ReservationRules
from extender.planner.framework.session import Session
from muster.resources.runtime import parse_duration_s

_MODES = get_args(ReservationMode)
_MOST_HEADS = 256
"""More would cost every gang a look at each of them."""


class Reservations(PlainPlugin):
    """Sets the rules; without it they are the default ones. `allocate` makes the reservations.

    Arguments: `mode` (strict, reserve or besteffort), `patience` (a duration) and `heads` (how many at once).
    """

    name = "reservations"
    OWN_ARGUMENTS: ClassVar[Mapping[str, OwnArgument]] = {
        "mode": OwnArgument("reserve", "what gangs may do behind a head that waits: `strict`, `reserve`, `besteffort`"),
        "patience": OwnArgument("10m", "after so long a head has nodes reserved for it although no end is known"),
        "heads": OwnArgument("16", f"gangs that have a reservation at once, 0 to {_MOST_HEADS}"),
    }

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, tuple(self.OWN_ARGUMENTS))
        rules = ReservationRules()
        self._rules = ReservationRules(
            mode=_mode(arguments.get("mode", rules.mode)),
            patience_s=_patience_s(arguments.get("patience", f"{rules.patience_s:.0f}s")),
            heads=_heads(arguments.get("heads", rules.heads)),
        )

    def on_session_open(self, session: Session) -> None:
        """Registers the rules."""
        session.hooks.reservation_rules.add(lambda: self._rules)


def _mode(value: object) -> ReservationMode:
    if value not in _MODES:
        raise ValueError(f"plugin 'reservations': mode is {value!r}; it must be one of {', '.join(_MODES)}")
    return value  # type: ignore[return-value]  # it is one of them


def _patience_s(value: object) -> float:
    try:
        return parse_duration_s(str(value))
    except ValueError as error:
        raise ValueError(f"plugin 'reservations': patience: {error}") from error


def _heads(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_HEADS:
        raise ValueError(f"plugin 'reservations': heads is {value!r}; it must be a number from 0 to {_MOST_HEADS}")
    return value
