"""The settings of a process: what its flags say for all its pods at once, as a YAML file.

A Struct per process says what there is: a field for each flag, of the same name, with its default and the reason.
Flags are left for what differs from pod to pod; one that is given wins over the file.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import yaml

from muster.process.mistakes import mistakes

API_VERSION: Final = "config.muster.dev/v1alpha1"
_WIDTH: Final = 116
_FLAG: Final = re.compile(r"--([a-z][a-z-]*[a-z])")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What each process's settings are made of."""

    KIND: ClassVar[str] = ""


class SettingsError(ValueError):
    """All that is wrong with a file, a sentence each."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = tuple(errors)


def read(text: str, wanted: type[Settings]) -> dict[str, Any]:
    """What a file sets: the names of fields and their values. SettingsError with all that is wrong, and where."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError([f"it is not YAML: {' '.join(str(error).split())}"]) from error
    if not isinstance(document, dict):
        raise SettingsError([f"there should be a mapping with apiVersion {API_VERSION} and kind {wanted.KIND}"])
    head = {"apiVersion": API_VERSION, "kind": wanted.KIND}
    errors = [
        f"{name}: should be {value}, and is {document.get(name)!r}"
        for name, value in head.items()
        if document.get(name) != value
    ]
    content = {name: value for name, value in document.items() if name not in head}
    errors += map(str, mistakes(content, wanted, ""))
    if errors:
        raise SettingsError(errors)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(wanted)}
    return {fields[name]: value for name, value in content.items()}


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None, wanted: type[Settings]) -> dict[str, Any]:
    """The arguments by their names, the file of `--settings` being what is so without a flag.

    What is wrong ends the process with code 2, as a wrong flag does.
    """
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help=f"YAML of kind {wanted.KIND}: what these flags say for all pods; a flag wins (docs/configuration.md)",
    )
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--settings", type=Path)
    file: Path | None = early.parse_known_args(argv)[0].settings
    if file:
        try:
            values = read(file.read_text(encoding="utf-8"), wanted)
        except (OSError, ValueError) as error:
            parser.error(f"{file}: {error}")
        for action in parser._actions:  # noqa: SLF001 - argparse has no other way to say that it has been given
            action.required = action.required and action.dest not in values
        parser.set_defaults(**values)
    given = vars(parser.parse_args(argv))
    del given["settings"]
    return given


def told(message: str) -> str:
    """What a process says of its flags, with the names that they have in a file."""
    return _FLAG.sub(lambda match: _camel(match[1]), message.removeprefix("argument "))


def file_of(settings: Settings, descriptions: dict[str, str]) -> str:
    """A file with every field, its default and what it is."""
    lines = [f"apiVersion: {API_VERSION}", f"kind: {settings.KIND}"]
    for name, value in msgspec.to_builtins(settings).items():
        lines += ["", *_comment(descriptions[name])]
        lines += yaml.safe_dump({name: value}, allow_unicode=True, width=_WIDTH).rstrip().splitlines()
    return "\n".join(lines) + "\n"


def _comment(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + len(word) >= _WIDTH:
            yield line
            line = "#"
        line += f" {word}"
    yield line


def _camel(flag: str) -> str:
    first, *others = flag.split("-")
    return first + "".join(each.capitalize() for each in others)
