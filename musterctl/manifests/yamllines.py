"""YAML line by line, each line with the path of what it shows: so that lines can be marked one by one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from musterctl.manifests.documents import KubectlDumper

Path = tuple[str | int, ...]
_STEP = 2


@dataclass(frozen=True, slots=True)
class YAMLLine:
    """One line and what it shows the beginning of."""

    text: str
    path: Path


def lines(value: Any, path: Path = (), indent: int = 0) -> Iterator[YAMLLine]:
    """The lines of a JSON value, in the order of its members."""
    if isinstance(value, Mapping) and value:
        for key, member in value.items():
            yield from _member(str(key), member, (*path, str(key)), indent)
    elif isinstance(value, list) and value:
        for index, element in enumerate(value):
            yield from _element(element, (*path, index), indent)
    else:
        yield YAMLLine(" " * indent + _scalar(value), path)


def text(value: Any) -> str:
    """The whole value as one text, each line with its line break."""
    return "".join(f"{line.text}\n" for line in lines(value))


def _member(key: str, value: Any, path: Path, indent: int) -> Iterator[YAMLLine]:
    head = f"{' ' * indent}{_scalar(key)}:"
    if isinstance(value, Mapping | list) and value:
        yield YAMLLine(head, path)
        yield from lines(value, path, indent if isinstance(value, list) else indent + _STEP)
    elif isinstance(value, str) and _is_text(value):
        yield YAMLLine(f"{head} |", path)
        for row in value.removesuffix("\n").split("\n"):
            yield YAMLLine(f"{' ' * (indent + _STEP)}{row}" if row else "", path)
    else:
        yield YAMLLine(f"{head} {_scalar(value)}", path)


def _element(value: Any, path: Path, indent: int) -> Iterator[YAMLLine]:
    """The lines of an element; the first one, behind a dash, stands for the whole element."""
    for number, line in enumerate(lines(value, path, indent + _STEP)):
        if number:
            yield line
        else:
            yield YAMLLine(f"{' ' * indent}- {line.text[indent + _STEP :]}", path)


def _is_text(value: str) -> bool:
    """True if a string can be written as a block without loss: printable lines, one line break at the end."""
    rows = value.removesuffix("\n").split("\n")
    return (
        value.endswith("\n")
        and not value.endswith("\n\n")
        and len(rows) > 1
        and not rows[0][:1].isspace()
        and bool(rows[0])
        and all(row.isprintable() and row == row.rstrip() for row in rows)
    )


def _scalar(value: Any) -> str:
    """One line: as kubectl reads it back, in double quotes where it would break the line."""
    style = '"' if isinstance(value, str) and not value.isprintable() else None
    written: str = yaml.dump(
        value, Dumper=KubectlDumper, default_flow_style=True, width=1_000_000, allow_unicode=True, default_style=style
    )
    return written.removesuffix("\n").removesuffix("\n...")
