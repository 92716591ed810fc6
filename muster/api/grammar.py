"""Functions that put numbers and lists into English sentences."""

from collections.abc import Iterable, Sequence


def listed(names: Sequence[str], most: int = 3, more: str = "more") -> str:
    """Return the first names of a list, and the number of further names: `a, b, c and 5 more`."""
    return some(names[:most], len(names), more)


def some(examples: Sequence[str], count: int, more: str = "more") -> str:
    """Return the given example names, and the number of further names: `a, b and 7 more`."""
    return ", ".join(examples) + (f" and {count - len(examples)} {more}" if count > len(examples) else "")


def any_of(names: Iterable[str]) -> str:
    """Return all names: `a, b`, or `none`."""
    return ", ".join(names) or "none"


def many(count: int, noun: str) -> str:
    """Return a number and its noun: `1 pod`, `3 pods`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def verb(count: int, verb: str) -> str:
    """Return a verb in the singular or plural: `finds`, `find`."""
    return f"{verb}s" if count == 1 else verb


def be(count: int) -> str:
    """Return `is` or `are`."""
    return "is" if count == 1 else "are"


def were(count: int) -> str:
    """Return `was` or `were`."""
    return "was" if count == 1 else "were"


def have(count: int) -> str:
    """Return `has` or `have`."""
    return "has" if count == 1 else "have"


def and_more(sentence: str, count: int) -> str:
    """Return a sentence, followed by the number of further ones if there are several: `… (and 2 more)`."""
    return f"{sentence} (and {count - 1} more)" if count > 1 else sentence


def also(sentence: str, more: str) -> str:
    """Return a sentence, with the text `more` appended unless this text is empty."""
    return f"{sentence}; {more}" if more else sentence
