"""Reasons as data, each of which is a code with parameters.

Programs read the code and the parameters. Users read a sentence, which a function in a table of codes builds from the
parameters. A module adds its own sentences to the table when it defines them (with `Sentence`, `constant` or `worded`).
A reason is stored next to its message, and `stored` accepts the reason only if it still produces this message.
"""

from collections.abc import Callable
from functools import cached_property, wraps
from inspect import signature
from typing import Any, ParamSpec

from msgspec import Struct, convert, field
from msgspec.structs import replace

P = ParamSpec("P")
_SENTENCES: dict[str, Callable[..., str]] = {}
"""Maps a code to the function that builds the sentence from the parameters."""


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A reason, whose `str` is its sentence."""

    code: str = ""
    """Code of the reason, which later versions of Muster do not change."""
    params: dict[str, Any] = field(default_factory=dict)
    """Counts, names and quantities in the sentence, and nested reasons."""

    def __str__(self) -> str:
        """Return the reason's sentence, without a full stop."""
        return self._sentence

    @cached_property
    def _sentence(self) -> str:  # many gangs wait for the same reason, and each cycle compares the sentences
        return _SENTENCES[self.code](**self.params)

    def __bool__(self) -> bool:
        """Return False for the empty reason."""
        return bool(self.code)

    def __hash__(self) -> int:
        """Return the hash of the code alone, because parameters may be lists, which have no hash."""
        return hash(self.code)

    @property
    def data(self) -> "Reason | None":
        """Return the data to store with the reason's message; None for the empty reason and for a quoted message."""
        return self if self.code not in {"", quoted.code} else None

    def given(self, **params: Any) -> "Reason":
        """Return a copy of the reason with these parameters."""
        return replace(self, params={**self.params, **params})

    def also(self, more: "Reason") -> "Reason":
        """Return the reason with another reason appended; unchanged if the other reason is empty."""
        return _also(self, more) if more else self


class Sentence:
    """A text with placeholders. Calling it with values for the placeholders returns a reason."""

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text
        _enter(code, text.format)

    def __call__(self, **params: Any) -> Reason:
        """Return the reason with these parameters, which are named like the placeholders."""
        return Reason(code=self.code, params=params)


def constant(code: str, text: str) -> Reason:
    """Add a sentence without parameters to the table, and return its reason."""
    _enter(code, lambda: text)
    return Reason(code=code)


def worded(code: str) -> Callable[[Callable[P, str]], Callable[P, Reason]]:
    """Register a function that builds the sentence of a reason; return a function that creates the reason."""

    def enter(words: Callable[P, str]) -> Callable[P, Reason]:
        _enter(code, words)
        names = tuple(signature(words).parameters)

        @wraps(words)
        def reason(*args: P.args, **kwargs: P.kwargs) -> Reason:
            return Reason(code=code, params={**dict(zip(names, args, strict=False)), **kwargs})

        return reason

    return enter


def _enter(code: str, words: Callable[..., str]) -> None:
    if code in _SENTENCES:
        raise ValueError(f"the code {code!r} already has a sentence; each code can have only one")
    _SENTENCES[code] = words


NOTHING = constant("", "")
"""The empty reason."""
quoted = Sentence("quoted", "{text}")
"""A reason that only quotes a message: another program or an older version has written no data with it."""


@worded("also")
def _also(first: Reason, more: Reason) -> str:
    return f"{first}; {more}"


def reason_of(words: Reason | str) -> Reason:
    """Return a plugin's result as a reason; a plugin may also return plain text."""
    return (quoted(text=words) if words else NOTHING) if isinstance(words, str) else words


def stored(data: Reason | None, message: str) -> Reason:
    """Return the reason stored with a message; the quoted message if no reason is stored or the two do not match.

    Another version of Muster, which interprets the stored data differently, may have written the message.
    """
    if data is not None:
        try:
            found = _nested(data)
            if str(found) == message:
                return found
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            pass  # this version expects other parameters for the code
    return reason_of(message)


def _nested(data: Reason) -> Reason:
    """Return a stored reason, decoded; reasons among its parameters are decoded too."""
    return data.given(
        **{
            name: _nested(convert(each, Reason)) if isinstance(each, dict) else each
            for name, each in data.params.items()
        }
    )
