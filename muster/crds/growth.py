"""Whether a CustomResourceDefinition takes every object that an earlier one took: CRDs only grow.

`told` writes down what a definition says, without descriptions, as sorted lines: one for the definition, one for each
version, one for each field, which stands deeper than what it is in. `taken` finds what a later definition takes back:
an object or a client of the earlier one that it would refuse, prune or read in another way. What was released last
stands in charts/released.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

JSON = dict[str, Any]
_STRUCTURE: Final = frozenset({"description", "properties", "items", "additionalProperties", "title", "example"})
"""What is not of a node itself, or of no consequence."""
_WIDER: Final = {("int32", "int64"), ("float", "double")}
_VALIDATIONS: Final = "x-kubernetes-validations"


def told(definition: JSON) -> list[str]:
    """What a definition says, as lines: the last part of a path, and a JSON object of what holds there."""
    parts = sorted((path.split("."), facts) for path, facts in _facts(definition).items())
    return [f"{' ' * len(path[:-1])}{path[-1]} {json.dumps(facts, sort_keys=True)}" for path, facts in parts]


def _read(lines: list[str]) -> Iterator[tuple[str, JSON]]:
    """The paths that `told` wrote, and what holds at each."""
    stack: list[str] = []
    for line in lines:
        name, _, text = line.strip().partition(" ")
        del stack[len(line) - len(line.lstrip()) :]
        stack.append(name)
        yield ".".join(stack), json.loads(text)


def taken(released: list[str], definition: JSON | None) -> list[str]:
    """What the definition takes back of what was released, as sentences; None says that it is gone."""
    if definition is None:
        return ["the definition is gone"]
    now = _facts(definition)
    found = []
    for path, before in _read(released):
        if path in now:
            found += [f"{path}: {each}" for each in _narrowed(before, now[path])]
        elif path.rpartition(".")[0] in now or "." not in path:  # of what is gone, its top is named
            found.append(f"{path}: is gone")
    return found


def _facts(definition: JSON) -> dict[str, JSON]:
    """What holds at each path: of the definition, of its versions, and of their fields."""
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
    """In which ways a node takes less than before."""
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name == "required":
            yield from (f"{field} is required now" for field in sorted(set(new or ()) - set(old or ())))
        elif name == "enum":
            yield from _enum(old, new)
        elif name == _VALIDATIONS:
            rules = {rule["rule"] for rule in old or ()}
            yield from (f"has a new rule, {rule['rule']}" for rule in new or () if rule["rule"] not in rules)
        elif _is_narrower(name, old, new):
            yield f"{name} was {json.dumps(old)} and is {json.dumps(new)}"


def _enum(old: list[Any] | None, new: list[Any] | None) -> Iterator[str]:
    if old is None:
        yield f"takes only {', '.join(map(str, new or ()))} now"
    elif new is not None:
        yield from (f"does not take {value} any more" for value in old if value not in new)


def _is_narrower(name: str, old: Any, new: Any) -> bool:
    """Whether a value of that name takes less than the other did."""
    if name not in _NARROWER:
        raise ValueError(f"nobody has said whether another {name} takes less")
    return _NARROWER[name](old, new)


def _rises(old: Any, new: Any) -> bool:
    return new is not None and (old is None or new > old)


def _falls(old: Any, new: Any) -> bool:
    return new is not None and (old is None or new < old)


def _comes(_: Any, new: Any) -> bool:
    return bool(new)


def _goes(old: Any, _: Any) -> bool:
    return bool(old)


def _stays(_: Any, new: Any) -> bool:
    return new is not None


def _changes(_old: Any, _new: Any) -> bool:
    return True  # what takes more cannot be seen, or clients depend on it


_NARROWER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), _rises),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), _falls),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum", "uniqueItems"), _comes),
    **dict.fromkeys(("nullable", "served", "x-kubernetes-preserve-unknown-fields"), _goes),
    **dict.fromkeys(("multipleOf", "not", "pattern"), _stays),
    **dict.fromkeys(("allOf", "anyOf", "default", "oneOf", "type"), _changes),
    **dict.fromkeys(("group", "names", "scope"), _changes),
    **dict.fromkeys(("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"), _changes),
    **dict.fromkeys(("x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"), _changes),
    "format": lambda old, new: new is not None and (old, new) not in _WIDER,
    "subresources": lambda old, new: not set(old) <= set(new),
}
"""When another value, or none, takes less; asked only where the two differ."""
