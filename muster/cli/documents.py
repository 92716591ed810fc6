"""Manifests from files, read as kubectl reads them: every key is a text, and times stay as they are written."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

JSON = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """YAML as far as it is JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's way to say it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def documents(file: str) -> Iterator[JSON]:
    """The objects of a file, `-` for standard input; those of a List one by one. ClickException says what is wrong."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        found = [_as_json(each) for each in yaml.load_all(text, _Loader) if each is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        raise click.ClickException(f"cannot read {file}: {error}") from error
    for document in found:
        items = document.get("items") or [] if isinstance(document, dict) and document.get("kind") == "List" else None
        for each in [document] if items is None else items:
            if not isinstance(each, dict) or not isinstance(each.get("metadata") or {}, dict):
                raise click.ClickException(f"{file}: there should be Kubernetes objects, and there is {each!r:.60}")
            yield each


def _as_json(node: Any) -> Any:
    if isinstance(node, dict):
        return {_key(key): _as_json(value) for key, value in node.items()}
    return [_as_json(each) for each in node] if isinstance(node, list) else node


def _key(key: Any) -> str:
    """A key as JSON has it: YAML takes `no` for a truth value, and 1 for a number."""
    return str(key).lower() if isinstance(key, bool) else str(key)
