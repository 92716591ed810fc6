"""Checks of the labels, selectors, tolerations and affinities of pods for common mistakes, by the API server's rules.

The settings of a resource group are copied to all its pods, so mistakes are reported when the group is read. Names,
operators and combinations of fields are checked. All other rules are left to the API server.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from muster.api.fields import FieldError
from muster.api.kubernetes import constraints, meta
from muster.resources.labels import MAX_LABEL, is_key, is_value

_TOLERATED: Final = ("Equal", "Exists")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LISTS: Final = ("In", "NotIn")
_BARE: Final = ("Exists", "DoesNotExist")
_COMPARISONS: Final = ("Gt", "Lt")
_OF_LABELS: Final = (*_LISTS, *_BARE)
_OF_NODES: Final = (*_OF_LABELS, *_COMPARISONS)
_WEIGHTS: Final = range(1, 101)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_SYNTAX = "of letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def label_errors(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Check keys and values of labels."""
    for key, value in labels.items():
        yield from _key_errors(key, f"{path}[{key}]")
        yield from _value_errors(value, f"{path}[{key}]")


def toleration_errors(toleration: constraints.Toleration, path: str) -> Iterator[FieldError]:
    """Check a toleration; its default operator is Equal."""
    operator, effect = toleration.operator or "Equal", toleration.effect
    if operator not in _TOLERATED:
        yield FieldError(f"{path}.operator", f"should be one of {', '.join(_TOLERATED)}", operator)
    if effect and effect not in _EFFECTS:
        yield FieldError(
            f"{path}.effect", f"should be one of {', '.join(_EFFECTS)}, or left out to match all effects", effect
        )
    if toleration.key:
        yield from _key_errors(toleration.key, f"{path}.key")
    elif operator != "Exists":
        yield FieldError(f"{path}.key", "may only be left out with operator Exists", reason="Required")
    if operator == "Exists" and toleration.value:
        yield FieldError(
            f"{path}.value", "is allowed with operator Equal only; Exists checks only the key", toleration.value
        )
    elif operator == "Equal":
        yield from _value_errors(toleration.value, f"{path}.value")
    if toleration.toleration_seconds is not None and effect != "NoExecute":
        yield FieldError(
            f"{path}.tolerationSeconds", "is allowed with effect NoExecute only", toleration.toleration_seconds
        )


def affinity_errors(affinity: constraints.Affinity, path: str) -> Iterator[FieldError]:
    """Check required and preferred terms of node affinity, pod affinity and pod anti-affinity."""
    nodes = affinity.node_affinity
    if nodes:
        below = f"{path}.nodeAffinity"
        if nodes.required:
            terms = f"{below}.{_REQUIRED}.nodeSelectorTerms"
            if not nodes.required.node_selector_terms:
                yield FieldError(terms, "give at least one, because an empty list matches no node", reason="Required")
            for index, term in enumerate(nodes.required.node_selector_terms):
                yield from _node_term_errors(term, f"{terms}[{index}]")
        for index, choice in enumerate(nodes.preferred):
            yield from _weight_errors(choice.weight, f"{below}.{_PREFERRED}[{index}].weight")
            yield from _node_term_errors(choice.preference, f"{below}.{_PREFERRED}[{index}].preference")
    for name, pods in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if pods:
            yield from _pod_affinity_errors(pods, f"{path}.{name}")


def _node_term_errors(term: constraints.NodeSelectorTerm, path: str) -> Iterator[FieldError]:
    yield from _expression_errors(term.match_expressions, f"{path}.matchExpressions", _OF_NODES)
    yield from _expression_errors(term.match_fields, f"{path}.matchFields", _LISTS)


def _pod_affinity_errors(affinity: constraints.PodAffinity, path: str) -> Iterator[FieldError]:
    terms = [(f"{path}.{_REQUIRED}[{index}]", term) for index, term in enumerate(affinity.required)]
    for index, choice in enumerate(affinity.preferred):
        below = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(choice.weight, f"{below}.weight")
        terms.append((f"{below}.podAffinityTerm", choice.pod_affinity_term))
    for below, term in terms:
        yield from _key_errors(term.topology_key, f"{below}.topologyKey")
        for name, selector in (("labelSelector", term.label_selector), ("namespaceSelector", term.namespace_selector)):
            if selector:
                yield from selector_errors(selector, f"{below}.{name}")


def selector_errors(selector: meta.LabelSelector, path: str) -> Iterator[FieldError]:
    """Check a label selector."""
    yield from label_errors(selector.match_labels, f"{path}.matchLabels")
    yield from _expression_errors(selector.match_expressions, f"{path}.matchExpressions", _OF_LABELS)


def _expression_errors(
    expressions: Sequence[meta.LabelSelectorRequirement], path: str, operators: Sequence[str]
) -> Iterator[FieldError]:
    """Check the key and operator of each expression, and the values that its operator needs."""
    for index, expression in enumerate(expressions):
        below, operator, values = f"{path}[{index}]", expression.operator, expression.values
        yield from _key_errors(expression.key, f"{below}.key")
        if operator not in operators:
            yield FieldError(f"{below}.operator", f"should be one of {', '.join(operators)}", operator)
        elif operator in _LISTS and not values:
            yield FieldError(f"{below}.values", f"operator {operator} needs at least one value", reason="Required")
        elif operator in _BARE and values:
            yield FieldError(f"{below}.values", f"operator {operator} checks only the key", values)
        elif operator in _COMPARISONS and (len(values) != 1 or not _INTEGER.fullmatch(values[0])):
            yield FieldError(f"{below}.values", f"operator {operator} compares with one whole number", values)
        for place, value in enumerate(values if operator in _LISTS else ()):
            yield from _value_errors(value, f"{below}.values[{place}]")


def _weight_errors(weight: int, path: str) -> Iterator[FieldError]:
    if weight not in _WEIGHTS:
        yield FieldError(path, f"should be from {_WEIGHTS[0]} to {_WEIGHTS[-1]}", weight)


def _key_errors(key: str, path: str) -> Iterator[FieldError]:
    if not is_key(key):
        message = f"should be a key: at most {MAX_LABEL} characters {_SYNTAX}, optionally after a domain and '/'"
        yield FieldError(path, message, key)


def _value_errors(value: str, path: str) -> Iterator[FieldError]:
    if not is_value(value):
        yield FieldError(path, f"should be empty, or at most {MAX_LABEL} characters {_SYNTAX}", value)
