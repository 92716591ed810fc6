"""Numbers and lists as sentences have them."""

from collections.abc import Iterable, Sequence


def listed(names: Sequence[str], most: int = 3, more: str = "more") -> str:
    """The first of many names, and how many there are besides: `a, b, c and 5 more`."""
    return some(names[:most], len(names), more)


def some(examples: Sequence[str], count: int, more: str = "more") -> str:
    """Examples of so many: `a, b and 7 more`."""
    return ", ".join(examples) + (f" and {count - len(examples)} {more}" if count > len(examples) else "")


def any_of(names: Iterable[str]) -> str:
    """All names: `a, b`, or `none`."""
    return ", ".join(names) or "none"


def many(count: int, noun: str) -> str:
    """A number and what there are so many of: `1 pod`, `3 pods`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def verb(count: int, verb: str) -> str:
    """A verb as so many do it: `finds`, `find`."""
    return f"{verb}s" if count == 1 else verb


def be(count: int) -> str:
    """`is` or `are`."""
    return "is" if count == 1 else "are"


def also(sentence: str, more: str) -> str:
    """A sentence with something added, if there is something."""
    return f"{sentence}; {more}" if more else sentence
