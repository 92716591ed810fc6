"""The flags of job plugins: admission warns of unknown flags and unfit values, and ignores them.

Arguments are in the style of Go's flag package (`--k=v`, `-k v`, `--switch`), as in Volcano. Unlike there, an unknown
flag does not hide those behind it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muster.api.limits import whole_number

Default = str | bool | int
Flags = Mapping[str, Default]
"""Flag → its default, which also has the type of its values."""


class Parsed(NamedTuple):
    """Flags over their defaults, and the ignored ones: unknown flags, and those whose value does not fit."""

    values: dict[str, Any]
    unknown: list[str]
    unfit: list[str]


def parse(arguments: Sequence[str], defaults: Flags) -> Parsed:
    """The flags among `arguments`. An unknown one is ignored with its value; an unfit value leaves the default."""
    result = Parsed(dict(defaults), [], [])
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            continue
        name, given, text = word.lstrip("-").partition("=")
        default = defaults.get(name)
        if not given and not isinstance(default, bool) and words and not words[0].startswith("-"):
            text = words.pop(0)
        if default is None:
            result.unknown.append(name)
            continue
        value = _value(text if given or not isinstance(default, bool) else "true", default)
        if value is None:
            result.unfit.append(name)
        else:
            result.values[name] = value
    return result


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_HIGHEST_PORT = 65535


def _value(text: str, default: Default) -> Default | None:
    """The value in the type of the flag's default; None if it does not fit. Every number is a port or a time in s."""
    if isinstance(default, bool):
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(default, int):
        number = whole_number(text) or 0
        return number if 0 < number <= _HIGHEST_PORT else None
    return text or None


def warnings(plugin: str, arguments: Sequence[str], defaults: Flags) -> list[str]:
    """A sentence for each ignored flag of a plugin, with the flags that it has."""
    parsed = parse(arguments, defaults)
    known = f"its flags are {', '.join(defaults)}" if defaults else "it has no flags"
    return [
        *(f"spec.plugins[{plugin}]: unknown flag {name} is ignored; {known}" for name in parsed.unknown),
        *(
            f"spec.plugins[{plugin}]: the value of flag {name} does not fit; its default {_shown(defaults[name])} holds"
            for name in parsed.unfit
        ),
    ]


def _shown(default: Default) -> str:
    return str(default).lower() if isinstance(default, bool) else repr(default)
