"""Regular expressions that users write: RE2's, as in Go, whose time grows with the length of the text and no faster.

Python's own engine tries alternatives one after the other, and a short pattern can keep it busy for years.
"""

from typing import Any, Final

import re2

from muster.api.limits import PATTERN_CHARS, PATTERN_STEPS

_MEMORY_BYTES: Final = 1 << 20
"""For one program; what needs more has far more steps than the limit."""


class PatternError(ValueError):
    """A pattern that cannot be used; the message says why, and is for its owner."""


def steps_of(pattern: str) -> int:
    """How many steps RE2's program for a pattern has. Raises PatternError if there is none, or it is over a limit."""
    if len(pattern) > PATTERN_CHARS.value:
        raise PatternError(
            f"it has {len(pattern)} characters; {PATTERN_CHARS.value} are allowed ({PATTERN_CHARS.name})"
        )
    try:
        steps = int(re2.compile(pattern, options(_MEMORY_BYTES)).programsize)
    except re2.error as error:
        raise PatternError(_text(error)) from error
    except UnicodeEncodeError as error:
        raise PatternError("it is no valid Unicode") from error
    if steps > PATTERN_STEPS.value:
        raise PatternError(f"it takes {steps} steps; {PATTERN_STEPS.value} are allowed ({PATTERN_STEPS.name})")
    return steps


def options(memory_bytes: int) -> Any:
    """How patterns are compiled: as Go does, without groups, and quietly."""
    found = re2.Options()
    found.max_mem = memory_bytes
    found.log_errors = False
    found.never_capture = True
    return found


def _text(error: Exception) -> str:
    """RE2's own words, which come as bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
