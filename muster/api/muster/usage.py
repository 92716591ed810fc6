"""What queues have used this month, as the recorder of the history publishes it in the ConfigMap `muster-usage`. Pure.

Nothing read is trusted: of a document that is too long, or no usage, nothing counts, and the reason is said.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

KEY: Final = "usage.json"
MOST_CHARS: Final = 900_000
"""Of the document; the API server takes ConfigMaps of 1 MiB."""
AHEAD_S: Final = 600.0
"""What is said to be up to a later time than this from now is not believed: clocks differ less."""


class QueueUsage(msgspec.Struct, frozen=True):
    """What the gangs of one queue, without those below it, have held."""

    month: str = ""
    """In UTC, e.g. 2026-11."""
    seconds: dict[str, float] = {}
    """Resource → seconds for which one of its units was held: a GPU, a core, a byte, a pod."""


class Usage(msgspec.Struct, frozen=True):
    """The usage of all queues up to a moment, in seconds since the epoch."""

    until: float
    queues: dict[str, QueueUsage] = {}


_USAGE: Final = msgspec.json.Decoder(Usage)


def read_usage(data: Mapping[str, Any]) -> Usage:
    """Return the usage in the data of a ConfigMap; ValueError says why there is none."""
    text = data.get(KEY)
    if not isinstance(text, str):
        raise ValueError(f"it has no key {KEY}")  # noqa: TRY004 - what was read is wrong, not an argument's type
    if len(text) > MOST_CHARS:
        raise ValueError(f"its {KEY} has more than {MOST_CHARS} characters")
    try:
        usage = _USAGE.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"its {KEY} cannot be read: {error}") from error
    numbers = [usage.until, *(each for queue in usage.queues.values() for each in queue.seconds.values())]
    if not all(0 <= number < float("inf") for number in numbers):
        raise ValueError(f"its {KEY} has amounts below 0")
    return usage


def month_of(now_s: float) -> tuple[str, float, float]:
    """Return the month of a moment in UTC, and when it begins and ends, in seconds since the epoch."""
    now = datetime.fromtimestamp(now_s, UTC)
    begin = datetime(now.year, now.month, 1, tzinfo=UTC)
    end = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    return f"{now.year}-{now.month:02}", begin.timestamp(), end.timestamp()
