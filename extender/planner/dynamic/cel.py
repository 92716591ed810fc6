"""Evaluation of CEL expressions (Common Expression Language) about devices, as in the API server.

The interpreter is CEL's own implementation in C++ (cel-expr-python); an evaluation takes a few microseconds.
Expressions that use Kubernetes' libraries for sets, lists or addresses do not compile, so they are unsupported.
Expressions that are expensive to evaluate are unsupported, too.

An expression depends only on the attributes and capacities that it names. Results are therefore cached by expression
and named values instead of by device. For example, a thousand devices that differ only in their serial number usually
cost one evaluation. Expressions are written by tenants, so they must not be able to slow down the planner. Regular
expressions are matched by re2 in time proportional to the text, and rejected expressions are cached.
"""

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any

import re2

from extender.planner import reasons
from extender.planner.dynamic.functions import environment, quantity_value, semver_value
from muster.api.kubernetes.devices import Device

MOST_CHARS = 10 * 1024
"""Maximum length of an expression, as in the API."""
MOST_AMPLIFIED_CHARS, MOST_AMPLIFIERS = 2048, 2
"""Maximum length of an expression that contains loops, and maximum number of loops in an expression. Both limits are
low, because loops cost more than linear time."""
MOST_ANSWERS = 8192
"""Maximum number of cached results of an expression. Only kube-scheduler evaluates an expression that distinguishes
more devices."""
_AMPLIFIERS = re2.compile(
    r"\b(all|exists|exists_one|existsOne|map|filter|transform\w*|sortBy|bind|replace|join|format|split)\s*\("
)
_TEXT = r"\"[^\"\\]*\"|'[^'\\]*'"
_ACCESS = re2.compile(
    rf"\bdevice\s*\.\s*(?P<what>attributes|capacity)\b(?:\s*\[\s*(?P<domain>{_TEXT})\s*\]"
    rf"(?:\s*(?:\.\s*\??\s*(?P<name>[A-Za-z_]\w*)(?P<call>\s*\()?|\[\s*\??\s*(?P<key>{_TEXT})\s*\]))?)?"
)
_PLAIN = re2.compile(r"\bdevice\s*\.\s*(?:driver|allowMultipleAllocations)\b")
_DEVICE = re2.compile(r"\bdevice\b")
Mention = tuple[str, str | None, str | None]
"""Reference to the device's `attributes` or `capacity`, with a domain and a name (None: any)."""


class UnsupportedError(ValueError):
    """Raised for an expression that only kube-scheduler can evaluate; the message is the reason for users."""


class Selector:
    """A compiled expression with a cache of its results."""

    def __init__(self, expression: str) -> None:
        if len(expression) > MOST_CHARS:
            raise UnsupportedError(reasons.devices.TOO_LONG)
        amplifiers = len(_AMPLIFIERS.findall(expression))
        if amplifiers > MOST_AMPLIFIERS or (amplifiers and len(expression) > MOST_AMPLIFIED_CHARS):
            raise UnsupportedError(reasons.devices.TOO_LONG)
        self.mentions = mentions(expression)
        self._answers: dict[Hashable, bool] = {}
        try:
            self._program = environment().compile(expression)
        except Exception as error:
            raise UnsupportedError(reasons.devices.not_understood(error=str(error).partition("\n")[0][:200])) from error

    def matches(self, driver: str, device: Device) -> bool:
        """Return True if the expression is true for the device. Errors, such as a missing attribute, count as False."""
        values = tuple(_values_of(driver, device, mention) for mention in self.mentions)
        key = driver, device.allow_multiple_allocations, values  # all values on which the result depends
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= MOST_ANSWERS:
                raise UnsupportedError(reasons.devices.too_many_answers(most=MOST_ANSWERS))
            answer = self._answers[key] = self._evaluate(driver, device)
        return answer

    def drop_answers(self) -> None:
        """Drop the cached results, because results for deleted devices would count towards `MOST_ANSWERS`."""
        self._answers.clear()

    def _evaluate(self, driver: str, device: Device) -> bool:
        try:
            value = environment_of(driver, device)
            for what, domain, _ in self.mentions:  # a domain that the device lacks is empty, not an error
                if domain is not None:
                    value[what].setdefault(domain, {})
            answer = self._program.eval(data={"device": value}).plain_value()
        except Exception as error:
            if "budget" in str(error):
                raise UnsupportedError(reasons.devices.TOO_MANY_STEPS) from error
            return False
        return answer is True


def selector(expression: str) -> Selector:
    """Return the selector for an expression; equal expressions share one selector. Raises UnsupportedError."""
    found = _compiled(expression)
    if isinstance(found, str):
        raise UnsupportedError(found)
    return found


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Selector | str:
    """Compile an expression and return its selector, or why it is rejected; both are cached from cycle to cycle."""
    try:
        return Selector(expression)
    except UnsupportedError as error:
        return str(error)


def mentions(expression: str) -> tuple[Mention, ...]:
    """Return the attributes and capacities of a device that the expression can depend on."""
    found: set[Mention] = set()
    read = 0
    for match in _ACCESS.finditer(expression):
        read += 1
        domain = _unquoted(match["domain"])
        name = None if match["call"] else match["name"] or _unquoted(match["key"])  # a call is not an attribute
        found.add((match["what"], domain, name if domain is not None else None))
    if len(_DEVICE.findall(expression)) != read + len(_PLAIN.findall(expression)):
        return ("attributes", None, None), ("capacity", None, None)
    return tuple(sorted(found, key=repr))


def environment_of(driver: str, device: Device) -> dict[str, Any]:
    """Return the value of the variable `device`, which groups names by domain; the driver is the default domain."""
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in device.attributes.items():
        domain, _, short = name.rpartition("/")
        given: list[Any] = [attribute.text, attribute.number, attribute.flag]
        if attribute.version is not None:
            given = [semver_value(attribute.version)]
        for value in [value for value in given if value is not None][:1]:
            attributes.setdefault(domain or driver, {})[short] = value
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in device.capacity.items():
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = quantity_value(amount.value)
    return {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": attributes,
        "capacity": capacity,
    }


def value_of(driver: str, values: Mapping[str, Any], name: str) -> str:
    """Return an attribute or capacity as comparable text; empty if the device lacks it. `name` includes the domain."""
    domain, _, short = name.rpartition("/")
    value = values.get(name) or (values.get(short) if domain == driver else None)
    return "" if value is None else repr(value)


def _values_of(driver: str, device: Device, mention: Mention) -> Hashable:
    what, domain, name = mention
    values: Mapping[str, Any] = device.attributes if what == "attributes" else device.capacity
    if domain is None or name is None:
        return tuple(sorted((key, repr(value)) for key, value in values.items()))
    return value_of(driver, values, f"{domain}/{name}")


def _unquoted(text: str | None) -> str | None:
    return None if text is None else text[1:-1]
