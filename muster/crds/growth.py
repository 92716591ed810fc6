"""The comparison of two versions of a CRD: new fields, and ways in which the new version accepts fewer objects."""

import json
from collections.abc import Callable, Iterator, Mapping
from re import finditer
from typing import Any, Final

JSON = dict[str, Any]
_WIDER: Final = {("int32", "int64"), ("float", "double")}
_VALIDATIONS: Final = "x-kubernetes-validations"
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
    **dict.fromkeys(("multipleOf", "not"), lambda _, new: new is not None),
    "pattern": lambda old, new: new not in {None, f"^({(old or '')[1:-1]})?$"},  # the second one takes "" as well
    # A wider value of these cannot be told from a narrower one, or clients depend on it.
    **dict.fromkeys(
        ("allOf", "anyOf", "default", "oneOf", "type", "group", "names", "scope", "x-kubernetes-embedded-resource",
         "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"),
        lambda _old, _new: True,
    ),
    "format": lambda old, new: new is not None and (old, new) not in _WIDER,
    "subresources": lambda old, new: not set(old) <= set(new),
}  # fmt: skip
"""Maps a property's name to a function that returns True if the new value, or no value, accepts fewer objects."""


def taken_back(before: Mapping[str, JSON], now: Mapping[str, JSON]) -> Iterator[str]:
    """Yield a sentence for each way in which a CRD (as returned by `facts_of`) accepts fewer objects than before."""
    for path, old in before.items():
        if path in now:
            free, new = _may_go(path, now), now[path]
            facts = {name: fact for name, fact in old.items() if name in new or name not in free}
            if path.split(".")[2:3] == ["status"] and "default" not in old:  # no client writes the status
                new = {name: fact for name, fact in new.items() if name != "default"}
            yield from (f"{path}: {each}" for each in _narrowed(facts, new))
        elif path.rpartition(".")[0] in now or "." not in path:  # of a removed part only the top is named
            yield f"{path}: is gone"


def added(before: Mapping[str, JSON], now: Mapping[str, JSON]) -> list[str]:
    """Return the paths of new parts of a schema. Of nested new parts, only the outermost is included."""
    return [path for path in now if path not in before and path.rpartition(".")[0] in {*before, ""}]


def _may_go(path: str, facts: Mapping[str, JSON]) -> set[str]:
    """Return properties that may be dropped within lists: defaults, which readers apply, and keys of atomic lists."""
    lists = [path[: place.start()] for place in finditer(r"\.\[\]", path)]
    atomic = any(facts[each].get("x-kubernetes-list-type", "atomic") == "atomic" for each in lists)
    keys = {"x-kubernetes-list-map-keys", "x-kubernetes-list-type"} if atomic else set()
    return {"default", *keys} if lists else set()


def _narrowed(before: JSON, now: JSON) -> Iterator[str]:
    """Yield the ways in which a part of a schema accepts fewer objects than before."""
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name == "required":
            yield from (f"{field} is required now" for field in sorted(set(new or ()) - set(old or ())))
        elif name == "enum":
            if old is None:
                yield f"accepts only {', '.join(map(str, new or ()))} now"
            elif new is not None:
                yield from (f"no longer accepts {value}" for value in old if value not in new)
        elif name == _VALIDATIONS:
            rules = {rule["rule"] for rule in old or ()}
            yield from (f"has a new rule, {rule['rule']}" for rule in new or () if rule["rule"] not in rules)
        elif name not in _NARROWER:
            raise ValueError(f"{name}: there is no rule that compares its values")
        elif _NARROWER[name](old, new):
            yield f"{name} was {json.dumps(old)} and is {json.dumps(new)}"
