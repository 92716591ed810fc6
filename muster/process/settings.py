"""Settings that are equal for all pods of a process, in a YAML file; a Struct defines the fields of the file.

Only the Struct defines the type, limits, default and description of a setting. Command-line flags are only for settings
that differ between pods.
"""

import argparse
import operator
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeVar

import msgspec
import yaml
from msgspec import Meta, inspect

from muster.api.fields import FieldError

API_VERSION: Final = "config.muster.dev/v1beta1"
_READ: Final = (API_VERSION, "config.muster.dev/v1alpha1")  # the same fields; the chart still writes the older one
Port = Annotated[int, Meta(ge=0, le=65535)]
_WIDTH: Final = 116
_COMMENT: Final = textwrap.TextWrapper(
    _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
)


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base class of the settings of each process."""

    KIND: ClassVar[str] = ""

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each invalid combination of valid fields; every sentence begins with a field's name."""
        yield from ()


S = TypeVar("S", bound=Settings)


class SettingsError(ValueError):
    """Errors in a settings file, one sentence each."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = tuple(errors)


def read(text: str, wanted: type[S]) -> S:
    """Return the settings in a settings file.

    Raises SettingsError with all errors in single fields; without those, with all errors in combinations of fields.
    """
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError([f"it is not YAML: {' '.join(str(error).split())}"]) from error
    if not isinstance(document, dict):
        raise SettingsError([f"expected a mapping with apiVersion {API_VERSION} and kind {wanted.KIND}"])
    head = {"apiVersion": _READ, "kind": (wanted.KIND,)}
    errors = [
        f"{name}: should be {values[0]}, and is {document.get(name)!r}"
        for name, values in head.items()
        if document.get(name) not in values
    ]
    content = {name: value for name, value in document.items() if name not in head}
    errors += map(str, mistakes(content, wanted, ""))
    if errors:
        raise SettingsError(errors)
    settings = msgspec.convert(content, wanted)
    if errors := [*settings.problems()]:
        raise SettingsError(errors)
    return settings


def parser_of(process: str, description: str) -> argparse.ArgumentParser:
    """Return the parser of a process's command line, with the common flag; the process adds its own flags."""
    parser = argparse.ArgumentParser(
        prog=process,
        description=description,
        epilog=f"Other settings are in the file of --settings: `muster config print-defaults {process}` prints one.",
        allow_abbrev=False,
    )
    parser.add_argument("--kubeconfig", default="", help="kubeconfig of the API server; empty: in-cluster")
    return parser


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None, wanted: type[S]) -> dict[str, Any]:
    """Return the arguments by name; `settings` has the settings from the file `--settings`, or the defaults.

    Errors end the process with code 2.
    """
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help=f"YAML of kind {wanted.KIND}: the settings that are the same for all pods (docs/configuration.md)",
    )
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error("; ".join(_refused(unknown, wanted)))
    given = vars(namespace)
    file: Path | None = given["settings"]
    try:
        given["settings"] = read(file.read_text(encoding="utf-8"), wanted) if file else wanted()
    except (OSError, ValueError) as error:
        parser.error(f"{file}: {error}")
    return given


def _refused(words: Sequence[str], wanted: type[Settings]) -> Iterator[str]:
    """Yield a sentence for each rejected argument of a command line.

    If the argument's flag corresponds to a field of the settings file, the sentence names this field.
    """
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    moved = {flag: name for flag in flags if (name := _camel(flag)) in wanted.__struct_encode_fields__}
    for flag, name in moved.items():
        yield f"{flag}: this is not a flag: set {name} in the file of --settings (docs/configuration.md)"
    if not moved:
        yield f"unrecognized arguments: {' '.join(words)}"


def text_of(settings: Settings, more: Mapping[str, object]) -> str:
    """Return the text of a settings file; `more` contains fields, named as in files, that override `settings`."""
    content = {"apiVersion": API_VERSION, "kind": settings.KIND, **msgspec.to_builtins(settings), **more}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def file_of(settings: Settings, descriptions: dict[str, str]) -> str:
    """Return the text of a settings file with every field, its default and its description."""
    lines = [f"apiVersion: {API_VERSION}", f"kind: {settings.KIND}"]
    for name, value in msgspec.to_builtins(settings).items():
        lines += ["", *_COMMENT.wrap(descriptions[name])]
        lines += yaml.safe_dump({name: value}, allow_unicode=True, width=_WIDTH).rstrip().splitlines()
    return "\n".join(lines) + "\n"


def _camel(flag: str) -> str:
    first, *others = flag.removeprefix("--").split("-")
    return first + "".join(each.capitalize() for each in others)


_SHAPES: Final[dict[type[inspect.Type], tuple[Any, str]]] = {
    inspect.StrType: (str, "text (in quotes, if YAML would read it as another type)"),
    inspect.IntType: (int, "a whole number"),
    inspect.FloatType: (int | float, "a number"),
    inspect.BoolType: (bool, "true or false"),
    inspect.ListType: (list, "a list"),
    inspect.VarTupleType: (list, "a list"),
    inspect.DictType: (dict, "a mapping"),
    inspect.StructType: (dict, "a mapping"),
}
_NUMBERS: Final = ("a whole number", "a number")


def mistakes(document: Any, shape: type, path: str) -> list[FieldError]:
    """Return the errors, including unknown fields, in a `document` that must match the Struct `shape`."""
    return list(_mistakes(document, inspect.type_info(shape), path))


def _mistakes(value: Any, shape: inspect.Type, path: str) -> Iterator[FieldError]:
    wanted, word = _SHAPES.get(type(shape), (object, ""))  # any other shape accepts all values
    match shape:
        case inspect.UnionType():
            if value is not None:
                yield from _mistakes(value, next(each for each in shape.types if type(each) in _SHAPES), path)
        case _ if not isinstance(value, wanted) or (isinstance(value, bool) and word in _NUMBERS):
            yield FieldError(path, f"should be {word}", value)
        case inspect.LiteralType() | inspect.IntType() | inspect.FloatType():
            yield from _out_of_range(value, shape, path)
        case inspect.StructType():
            yield from _of_fields(value, shape, path)
        case inspect.DictType():
            for key, member in value.items():
                yield from _mistakes(key, shape.key_type, path)
                yield from _mistakes(member, shape.value_type, f"{path}[{key}]")
        case inspect.ListType() | inspect.VarTupleType():
            for index, member in enumerate(value):
                yield from _mistakes(member, shape.item_type, f"{path}[{index}]")


def _out_of_range(
    value: Any, shape: inspect.LiteralType | inspect.IntType | inspect.FloatType, path: str
) -> Iterator[FieldError]:
    if isinstance(shape, inspect.LiteralType):
        if value not in shape.values:
            message = f"should be one of {', '.join(map(str, shape.values))}"
            yield FieldError(path, message, value, reason="NotSupported")
        return
    limits = {
        "more than": (shape.gt, operator.gt),
        "at least": (shape.ge, operator.ge),
        "less than": (shape.lt, operator.lt),
        "at most": (shape.le, operator.le),
    }
    asked = {words: (limit, holds) for words, (limit, holds) in limits.items() if limit is not None}
    if not all(holds(value, limit) for limit, holds in asked.values()):
        bounds = " and ".join(f"{words} {limit:g}" for words, (limit, _) in asked.items())
        yield FieldError(path, f"should be {bounds}", value)


def _of_fields(value: dict[Any, Any], shape: inspect.StructType, path: str) -> Iterator[FieldError]:
    fields = {field.encode_name: field for field in shape.fields}
    for name, member in value.items():
        if name in fields:
            yield from _mistakes(member, fields[name].type, _below(path, name))
        else:
            message = f"there is no such field; there are {', '.join(fields)}"
            yield FieldError(_below(path, name), message, name, reason="NotSupported")
    for name, field in fields.items():
        if field.required and name not in value:
            yield FieldError(_below(path, name), "it is missing", reason="Required")


def _below(path: str, name: Any) -> str:
    """Return the path of a field as a list of names; a name that contains a dot stays one part."""
    if "." in str(name):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)
