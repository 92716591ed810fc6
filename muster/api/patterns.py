"""Regular expressions of users: RE2's, as in Go, which take time linear in the text.

Python's own engine backtracks, so that a short pattern can keep it busy for years.
"""

from typing import Any, Final

import re2

from muster.api.limits import PATTERN_CHARS, PATTERN_STEPS

_MEMORY_BYTES: Final = 1 << 20
"""Memory of one program; a pattern that needs more has far more steps than the limit."""


class PatternError(ValueError):
    """A pattern that cannot be used; the message tells its author why."""


def steps_of(pattern: str) -> int:
    """Return the number of steps of RE2's program for a pattern; PatternError if it is malformed or over a limit."""
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
    """Return the options of compilation: as in Go, without groups, and without output."""
    found = re2.Options()
    found.max_mem = memory_bytes
    found.log_errors = False
    found.never_capture = True
    return found


def _text(error: Exception) -> str:
    """Return RE2's message, which comes as bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
