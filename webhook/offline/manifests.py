"""Reading and writing manifests as kubectl does. Objects can also be written line by line, so that lines can be marked.

Ambiguous YAML is interpreted as by kubectl: `no` and `y` are booleans, `1e3` is a number, and `10:30` and dates are
strings. The result of reading is JSON, in which all keys are strings.
"""

import json
import math
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

JSON = dict[str, Any]

_TAG = "tag:yaml.org,2002:"
_TRUE = ("y", "yes", "true", "on")
_NUMBER = (
    r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?)"
)
_PLAIN = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "|".join(f"{word}|{word.title()}|{word.upper()}" for word in (*_TRUE, "n", "no", "false", "off")), None),
    ("float", _NUMBER, list("+-.0123456789")),
    ("merge", r"<<", ["<"]),
)
"""The YAML types of unquoted values, each with its pattern and first characters; all other values are strings."""

_OCTAL = re.compile(r"[-+]?0[0-7]+")
_INTEGERS = range(-(2**63), 2**64)
_EXPONENT_FROM = 1e21
Place = tuple[str | int, ...]
_STEP = 2


DEPTH = 200
"""Maximum nesting of maps and lists; the limit is needed because libyaml's composer recurses in C without a limit."""


class _Loader(yaml.CSafeLoader):
    """A YAML loader for the types that JSON also has.

    Other YAML types are rejected, with their position in the text.
    """

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - PyYAML's interface
    yaml_constructors = {  # noqa: RUF012 - the same
        tag: make
        for tag, make in yaml.CSafeLoader.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in {"null", "str", "seq", "map", "binary"}
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        """Return a mapping in which every key is a string: in Python, 1 and True would be the same key."""
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "expected a mapping of keys to values", node.start_mark)
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep) for key, value in node.value}

    def _key(self, node: yaml.Node) -> str:
        key = self.construct_object(node, deep=True)
        if not isinstance(key, bool | int | float | str):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a string, a number or a boolean", node.start_mark
            )
        return str(key).lower() if isinstance(key, bool) else str(key)

    def is_true(self, node: yaml.ScalarNode) -> bool:
        """Return True if a text is a YAML 1.1 spelling of true."""
        return str(self.construct_scalar(node)).lower() in _TRUE

    def number(self, node: yaml.ScalarNode) -> float | str:
        """Return the number that an unquoted text represents."""
        return _number(str(self.construct_scalar(node)))


class KubectlDumper(yaml.SafeDumper):
    """YAML writer that quotes strings which kubectl would otherwise interpret as another type."""


for _kind, _pattern, _first in _PLAIN:
    for _class in (_Loader, KubectlDumper):
        _class.add_implicit_resolver(_TAG + _kind, re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor(f"{_TAG}bool", _Loader.is_true)
for _kind in ("float", "int"):
    _Loader.add_constructor(_TAG + _kind, _Loader.number)


class ManifestError(Exception):
    """Error for a manifest that cannot be read or is refused; the message has the location and the reason."""


def documents_in(text: str, file: str, *, aliases: bool = True) -> Iterator[JSON]:
    """Yield the objects in a text, including each object of a List; errors refer to the text as `file`.

    Unless `aliases` is true, YAML aliases are refused, because a few lines of aliases can expand to a very long text.
    """
    for document in _read_documents(text, file, aliases=aliases):
        is_list = isinstance(document, dict) and isinstance(document.get("items"), list)
        for each in document["items"] if is_list else [document]:
            if not isinstance(each, dict) or not isinstance(each.get("metadata"), dict | None):
                raise ManifestError(f"{file}: expected Kubernetes objects, but found {each!r:.60}")
            yield each


def as_yaml(content: JSON) -> str:
    """Return an object as YAML that kubectl reads back unchanged."""
    return yaml.dump(content, Dumper=KubectlDumper, sort_keys=False, allow_unicode=True).rstrip("\n")


def _read_documents(text: str, file: str, *, aliases: bool) -> list[Any]:
    try:
        return [_as_json(each) for each in _parsed(text, aliases=aliases) if each is not None]
    except (yaml.YAMLError, ValueError) as error:
        why = str(error).replace('"<unicode string>", ', "")
        raise ManifestError(f"cannot read {file}: {why}") from error
    except RecursionError as error:
        raise ManifestError(f"cannot read {file}: it is nested too deeply, or an alias contains itself") from error


def _check(text: str, *, aliases: bool) -> None:
    """Reject text that is nested too deeply, or contains aliases that are not allowed, before it is converted."""
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise RecursionError
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise ValueError(
                "YAML aliases (*name) are not allowed here, because a few lines of them can expand to a very long text"
            )


def _parsed(text: str, *, aliases: bool) -> list[Any]:
    if text.lstrip().startswith("{"):  # most JSON is YAML, but JSON may be indented with tabs
        try:
            return [json.loads(text)]
        except ValueError:
            pass  # YAML that begins like JSON, or several documents; otherwise YAML's message is as good
    _check(text, aliases=aliases)
    return list(yaml.load_all(text, _Loader))


def _number(text: str) -> float | str:
    """Return the value that kubectl reads for a number: a leading 0 means octal, and more than 64 bits lose digits."""
    plain = text.replace("_", "")
    try:
        whole = int(plain, 8) if _OCTAL.fullmatch(plain) else int(plain, 0)
    except ValueError:
        pass
    else:
        if whole in _INTEGERS:
            return whole
    try:
        number = float(plain)
    except ValueError:
        return text  # 0x without digits, or with too many
    if number.is_integer() and abs(number) < _EXPONENT_FROM:
        return int(number)
    return number if math.isfinite(number) else text


def _as_json(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _as_json(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_as_json(each) for each in node]
    if isinstance(node, bytes):
        return node.decode()
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise ValueError(f"JSON has no {type(node).__name__}")


@dataclass(frozen=True, slots=True)
class YAMLLine:
    """A line of YAML, and the path of the value that starts on the line."""

    text: str
    path: Place


def yaml_lines(value: Any, path: Place = (), indent: int = 0) -> Iterator[YAMLLine]:
    """Yield the lines of a JSON value as YAML, in the order of its fields, each line with the path of its value."""
    if isinstance(value, Mapping) and value:
        for key, member in value.items():
            yield from _member(str(key), member, (*path, str(key)), indent)
    elif isinstance(value, list) and value:
        for index, element in enumerate(value):
            yield from _element(element, (*path, index), indent)
    else:
        yield YAMLLine(" " * indent + _scalar(value), path)


def _member(key: str, value: Any, path: Place, indent: int) -> Iterator[YAMLLine]:
    head = f"{' ' * indent}{_scalar(key)}:"
    if isinstance(value, Mapping | list) and value:
        yield YAMLLine(head, path)
        yield from yaml_lines(value, path, indent if isinstance(value, list) else indent + _STEP)
    elif isinstance(value, str) and _is_text(value):
        yield YAMLLine(f"{head} |", path)
        for row in value.removesuffix("\n").split("\n"):
            yield YAMLLine(f"{' ' * (indent + _STEP)}{row}" if row else "", path)
    else:
        yield YAMLLine(f"{head} {_scalar(value)}", path)


def _element(value: Any, path: Place, indent: int) -> Iterator[YAMLLine]:
    """Yield the lines of a list element. The first line, with the dash, has the path of the whole element."""
    for number, line in enumerate(yaml_lines(value, path, indent + _STEP)):
        if number:
            yield line
        else:
            yield YAMLLine(f"{' ' * indent}- {line.text[indent + _STEP :]}", path)


def _is_text(value: str) -> bool:
    """Return True if a string can be written as a block without loss: printable lines with one final line break."""
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
    """Return a string on one line that kubectl reads back unchanged, in double quotes if necessary."""
    style = '"' if isinstance(value, str) and not value.isprintable() else None
    written: str = yaml.dump(
        value, Dumper=KubectlDumper, default_flow_style=True, width=math.inf, allow_unicode=True, default_style=style
    )
    return written.removesuffix("\n").removesuffix("\n...")
