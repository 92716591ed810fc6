"""The check that CRDs only grow: a CustomResourceDefinition accepts every object that an earlier one accepted.

`as_lines` writes a definition, without descriptions, as sorted lines: one for the definition, for each version and for
each field, indented below its parent. `taken_back` compares a later definition with these lines: it finds objects and
clients of the earlier one that the later one would refuse, prune or read in another way. charts/released has the lines
of the last release.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

JSON = dict[str, Any]
_STRUCTURE: Final = frozenset({"description", "properties", "items", "additionalProperties", "title", "example"})
"""Members of a node that hold other nodes, or have no effect."""
_WIDER: Final = {("int32", "int64"), ("float", "double")}
_VALIDATIONS: Final = "x-kubernetes-validations"


def as_lines(definition: JSON) -> list[str]:
    """A definition as lines: the last part of a path, and a JSON object of the facts there."""
    parts = sorted((path.split("."), facts) for path, facts in _facts(definition).items())
    return [f"{' ' * len(path[:-1])}{path[-1]} {json.dumps(facts, sort_keys=True)}" for path, facts in parts]


def _read(lines: list[str]) -> Iterator[tuple[str, JSON]]:
    """The paths that `as_lines` wrote, and the facts at each."""
    stack: list[str] = []
    for line in lines:
        name, _, text = line.strip().partition(" ")
        del stack[len(line) - len(line.lstrip()) :]
        stack.append(name)
        yield ".".join(stack), json.loads(text)


def taken_back(released: list[str], definition: JSON | None) -> list[str]:
    """The ways in which the definition is narrower than the released one, as sentences; None: it is gone."""
    if definition is None:
        return ["the definition is gone"]
    now = _facts(definition)
    found = []
    for path, before in _read(released):
        if path in now:
            found += [f"{path}: {each}" for each in _narrowed(before, now[path])]
        elif path.rpartition(".")[0] in now or "." not in path:  # of a removed part only the top is named
            found.append(f"{path}: is gone")
    return found


def _facts(definition: JSON) -> dict[str, JSON]:
    """The facts at each path: of the definition, of its versions, and of their fields."""
    spec = definition["spec"]
    names = {name: spec["names"][name] for name in ("kind", "plural", "singular")}
    found: dict[str, JSON] = {"definition": {"group": spec["group"], "scope": spec["scope"], "names": names}}
    for version in spec["versions"]:
        subresources = sorted(version.get("subresources") or {})
        found[version["name"]] = {"served": version["served"], "subresources": subresources}
        found |= _fields(version["schema"]["openAPIV3Schema"], f"{version['name']}.object")
    return found


def _fields(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, JSON]]:
    """Every node below a path, and the path itself."""
    yield path, {name: value for name, value in node.items() if name not in _STRUCTURE}
    for name, each in node.get("properties", {}).items():
        yield from _fields(each, f"{path}.{name}")
    if isinstance(node.get("items"), dict):
        yield from _fields(node["items"], f"{path}.[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from _fields(node["additionalProperties"], f"{path}.{{}}")


def _narrowed(before: JSON, now: JSON) -> Iterator[str]:
    """The ways in which a node accepts less than before."""
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name == "required":
            yield from (f"{field} is required now" for field in sorted(set(new or ()) - set(old or ())))
        elif name == "enum":
            if old is None:
                yield f"takes only {', '.join(map(str, new or ()))} now"
            elif new is not None:
                yield from (f"does not take {value} any more" for value in old if value not in new)
        elif name == _VALIDATIONS:
            rules = {rule["rule"] for rule in old or ()}
            yield from (f"has a new rule, {rule['rule']}" for rule in new or () if rule["rule"] not in rules)
        elif name not in _NARROWER:
            raise ValueError(f"{name} is not in the table that says when another value accepts less")
        elif _NARROWER[name](old, new):
            yield f"{name} was {json.dumps(old)} and is {json.dumps(new)}"


_NARROWER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys(
        ("minimum", "minLength", "minItems", "minProperties"),
        lambda old, new: new is not None and (old is None or new > old),
    ),
    **dict.fromkeys(
        ("maximum", "maxLength", "maxItems", "maxProperties"),
        lambda old, new: new is not None and (old is None or new < old),
    ),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum", "uniqueItems"), lambda _, new: bool(new)),
    **dict.fromkeys(("nullable", "served", "x-kubernetes-preserve-unknown-fields"), lambda old, _: bool(old)),
    **dict.fromkeys(("multipleOf", "not", "pattern"), lambda _, new: new is not None),
    # A wider value of these cannot be told from a narrower one, or clients depend on it.
    **dict.fromkeys(
        ("allOf", "anyOf", "default", "oneOf", "type", "group", "names", "scope", "x-kubernetes-embedded-resource",
         "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"),
        lambda _old, _new: True,
    ),
    "format": lambda old, new: new is not None and (old, new) not in _WIDER,
    "subresources": lambda old, new: not set(old) <= set(new),
}  # fmt: skip
"""For each name, if another value, or none, accepts less; called only if the two differ."""
