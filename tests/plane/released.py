"""The CRDs of the last release, made again from charts/released, which has every fact of them but texts and columns."""

import json
from collections.abc import Iterator
from typing import Any

from muster.crds.files import as_lines
from musterctl.generate import RELEASED, ROOT

JSON = dict[str, Any]


def released_crds() -> list[JSON]:
    """All of them, in the order of their names; `as_lines` gives the same lines for each."""
    found = []
    for file in sorted((ROOT / RELEASED).glob("*.txt")):
        lines = file.read_text(encoding="utf-8").splitlines()
        made = _definition(file.stem, lines)
        assert as_lines(made) == lines, f"{file.name} does not describe the CRD completely"
        found.append(made)
    return found


def _definition(name: str, lines: list[str]) -> JSON:
    """The definition of these lines; the first version is the one that is stored."""
    versions: list[JSON] = []
    whole: JSON = {}
    for path, facts in _facts(lines):
        if path == ["definition"]:
            whole = facts
        elif len(path) == 1:
            subresources: JSON = {each: {} for each in facts["subresources"]}
            version = {"name": path[0], "served": facts["served"], "storage": not versions}
            versions.append({**version, "subresources": subresources, "schema": {}})
        else:
            _put(versions[-1]["schema"], path[1:], facts)
    for each in versions:
        each["schema"] = {"openAPIV3Schema": each["schema"]["object"]}
    names = {**whole["names"], "listKind": f"{whole['names']['kind']}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": whole["group"], "scope": whole["scope"], "names": names, "versions": versions},
    }


def _facts(lines: list[str]) -> Iterator[tuple[list[str], JSON]]:
    """The path that each line stands for, and its facts."""
    path: list[str] = []
    for line in lines:
        name, _, text = line.strip().partition(" ")
        del path[len(line) - len(line.lstrip()) :]
        path.append(name)
        yield [*path], json.loads(text)


def _put(schema: JSON, path: list[str], facts: JSON) -> None:
    """Puts the facts of a node into the schema, whose nodes above it are there already."""
    node = schema
    if len(path) > 1:
        node = schema["object"]
        for name in path[1:-1]:
            node = _below(node, name)
        _add(node, path[-1], facts)
    else:
        schema["object"] = {**facts}


def _below(node: JSON, name: str) -> JSON:
    found: JSON = {"[]": lambda: node["items"], "{}": lambda: node["additionalProperties"]}.get(
        name, lambda: node["properties"][name]
    )()
    return found


def _add(node: JSON, name: str, facts: JSON) -> None:
    if name == "[]":
        node["items"] = {**facts}
    elif name == "{}":
        node["additionalProperties"] = {**facts}
    else:
        node.setdefault("properties", {})[name] = {**facts}
