"""HyperNodes are refused in Volcano's words, all errors at once."""

from typing import Any

import pytest
from webhook_world import JSON, request

from muster.api.limits import PATTERN_STEPS
from webhook.validate.hypernode import review


def hyper_node(*members: JSON, name: str = "rack-1") -> JSON:
    """A HyperNode with these members."""
    return {"kind": "HyperNode", "metadata": {"name": name}, "spec": {"tier": 1, "members": list(members)}}


def member(kind: str = "Node", **selector: Any) -> JSON:
    """One member."""
    return {"type": kind, "selector": selector}


def errors(*members: JSON) -> list[str]:
    """The verdict of the webhook."""
    return [str(error) for error in review(request(hyper_node(*members))).errors]


@pytest.mark.parametrize(("members", "path", "phrase"), [
    ([], "spec.members", "member must have at least one member"),
    ([member()], "spec.members[0].selector", "exactly one of exactMatch, regexMatch, or labelMatch"),
    ([member(exactMatch={"name": "a"}, labelMatch={"matchLabels": {"a": "b"}})], "spec.members[0].selector",
        "exactly one of exactMatch, regexMatch, or labelMatch"),
    ([member(exactMatch={"name": ""})], "spec.members[0].selector.exactMatch.name", "member exactMatch name is requ"),
    ([member(regexMatch={"pattern": ""})], "spec.members[0].selector.regexMatch.pattern", "pattern is required"),
    ([member(regexMatch={"pattern": "a(b"})], "spec.members[0].selector.regexMatch.pattern",
        "member regexMatch pattern is invalid: missing ): a(b"),
    ([member("HyperNode", exactMatch={"name": "rack-1"})], "spec.members[0].selector.exactMatch.name",
        "cannot be a member of itself"),
    ([member(labelMatch={"matchExpressions": [{"key": "a", "operator": "Like"}]})],
        "spec.members[0].selector.labelMatch.matchExpressions[0].operator",
        "should be one of In, NotIn, Exists, DoesNotExist"),
])  # fmt: skip
def test_each_refusal(members: list[JSON], path: str, phrase: str) -> None:
    """With the field's path, and the phrase that tools look for."""
    [error] = errors(*members)
    assert error.startswith(f"{path}: ")
    assert phrase in error


@pytest.mark.parametrize("pattern", ["(a{0,100}){0,100}", ".{0,999}", "x" * 513, "a\\1", "(?=a)", "\\pL{0,900}"])
def test_patterns_that_cost_too_much_or_are_not_re2_are_refused(pattern: str) -> None:
    """Whatever Python's engine would make of them."""
    [error] = errors(member(regexMatch={"pattern": pattern}))
    assert "member regexMatch pattern is invalid: " in error


@pytest.mark.parametrize(("more", "refused"), [(0, 0), (1, 1)])
def test_the_largest_pattern_is_one_of_as_many_steps_as_are_allowed(more: int, refused: int) -> None:
    """RE2's program has four steps more than the pattern has characters."""
    assert len(errors(member(regexMatch={"pattern": f"a{{{PATTERN_STEPS.value - 4 + more}}}"}))) == refused


def test_a_pattern_that_keeps_other_engines_busy_is_taken() -> None:
    """RE2 takes time in the length of the name only."""
    assert errors(member(regexMatch={"pattern": "^(a+)+$"})) == []


def test_all_errors_are_told_at_once() -> None:
    """Those of every member, and the amounts that are over their limit."""
    found = errors(*[member(regexMatch={"pattern": f"({n}"}) for n in range(65)], member())
    assert len(found) == 67
    assert "limit 'patterns per HyperNode'" in found[0]
    terms = {"matchLabels": {f"k{n}": "v" for n in range(65)}}
    assert "limit 'conditions of a label selector'" in errors(member(labelMatch=terms))[0]
    [error] = errors(*[member()] * 10_001)
    assert (
        error == "spec.members: Invalid value: 10001: must have at most 10000 members (limit 'members per HyperNode')"
    )


def test_members_that_take_nothing_are_warned_of() -> None:
    """Volcano accepts them, and so do we."""
    members = [
        member(labelMatch={}),
        member("HyperNode", regexMatch={"pattern": "rack"}),
        member("HyperNode", exactMatch={"name": "rack-2"}),
    ]
    verdict = review(request(hyper_node(*members)))
    assert not verdict.errors
    assert [warning.split(" matches ")[0] for warning in verdict.warnings] == ["spec.members[0]", "spec.members[1]"]


def test_an_update_is_checked_like_a_creation_unless_the_spec_stays() -> None:
    """Labels, status and deletion of a HyperNode that bypassed admission are not checked."""
    good, bad = hyper_node(member(exactMatch={"name": "a"})), hyper_node(member(regexMatch={"pattern": "("}))
    assert review(request(bad, operation="UPDATE", old=good)).errors
    assert not review(request(bad, operation="UPDATE", old=bad)).errors
    leaving = {**bad, "metadata": {"name": "rack-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert not review(request(leaving, operation="UPDATE", old=good)).errors
