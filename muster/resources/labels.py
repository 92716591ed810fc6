"""Label selectors: conditions on labels, and their text form for kubectl. Pure.

A selector matches if all of its conditions are met. A selector without conditions matches everything, as in the API
server.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

MAX_LABEL = 63
KNOWN_TEXTS = 1024
"""Maximum number of parsed selectors in the cache of this module."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition of a label selector."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return True if these labels meet the condition, as in the API server."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False

    def __str__(self) -> str:
        values = sorted(self.values)
        if self.operator == "In" and len(values) == 1:
            return f"{self.key}={values[0]}"
        if self.operator in {"In", "NotIn"}:
            return f"{self.key} {'in' if self.operator == 'In' else 'not in'} ({', '.join(values)})"
        return self.key if self.operator == "Exists" else f"!{self.key}"


Requirements = tuple[Requirement, ...]

_FORMS = "key=value, key!=value, key in (a,b), key notin (a,b), key, or !key"
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_DOMAIN = 253
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SET = re.compile(r"(?P<key>[^\s,=!()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s,=!()]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s,=!()]*)")
_KEY = re.compile(r"(?P<bare>!?)\s*(?P<key>[^\s,=!()]+)")


@lru_cache(KNOWN_TEXTS)
def read_selector(text: str) -> Requirements:
    """Return the conditions of a selector in kubectl's text form; raises a ValueError that describes the error."""
    if not text.strip():
        return ()
    return tuple(_read_requirement(part) for part in _parts(text))


def selects(selector: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Return True if these labels meet all conditions."""
    return all(each.holds(labels) for each in selector)


def is_key(text: str) -> bool:
    """Return True if a label may have this key: a name, possibly after a domain and a slash."""
    domain, slash, name = text.rpartition("/")
    named = len(name) <= MAX_LABEL and _NAME.fullmatch(name)
    return bool(named and (not slash or is_domain(domain)))


def is_domain(text: str) -> bool:
    """Return True for a DNS subdomain, the API server's syntax for names of many kinds."""
    return len(text) <= _MAX_DOMAIN and _DOMAIN.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Return True if a label may have this value, which may be empty."""
    return not text or (len(text) <= MAX_LABEL and _NAME.fullmatch(text) is not None)


def _parts(text: str) -> Iterator[str]:
    """Yield the conditions of a selector, which commas outside of parentheses separate."""
    start = depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth not in {0, 1}:
            raise ValueError(f"the parentheses of {text!r} do not match")
        if sign == "," and not depth:
            yield text[start:place].strip()
            start = place + 1
    if depth:
        raise ValueError(f"the parentheses of {text!r} do not match")
    yield text[start:].strip()


def _read_requirement(part: str) -> Requirement:
    if found := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in found["values"].split(","))
        operator = "In" if found["operator"] == "in" else "NotIn"
    elif found := _EQUAL.fullmatch(part):
        values = frozenset((found["value"],))
        operator = "NotIn" if found["operator"] == "!=" else "In"
    elif found := _KEY.fullmatch(part):
        values = frozenset()
        operator = "DoesNotExist" if found["bare"] else "Exists"
    else:
        raise ValueError(f"{part!r} is not a condition on a label; write {_FORMS}")
    if not is_key(found["key"]):
        raise ValueError(f"{found['key']!r} cannot be the key of a label")
    for value in values:
        if not is_value(value):
            raise ValueError(f"{value!r} cannot be the value of a label")
    return Requirement(found["key"], operator, values)
