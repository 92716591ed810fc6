"""Annotations of Muster's that have no effect are warned of."""

import pytest

from muster.api import names
from webhook.objects.names import _OF_USERS, LABELS, WRITTEN, unknown_keys


@pytest.mark.parametrize("text", ["30s", "1h30m", "0.5s"])
def test_a_runtime_that_can_be_read_is_no_warning(text: str) -> None:
    """As Go writes durations."""
    assert unknown_keys({"annotations": {"muster.dev/expected-runtime": text}}) == []


@pytest.mark.parametrize("text", ["soon", "-5s", "0s", "99999999h", ""])
def test_a_runtime_that_says_nothing_is_warned_of(text: str) -> None:
    """The pod runs all the same, and is expected to run for ever."""
    [warning] = unknown_keys({"annotations": {"muster.dev/expected-runtime": text}})
    assert warning == (
        f"metadata.annotations[muster.dev/expected-runtime]: {text!r} is not a duration from above 0 to 315360000 "
        "seconds, as 30s, 5m or 1h30m are; it has no effect"
    )


def test_an_unknown_way_to_reserve_is_warned_of() -> None:
    """With those there are."""
    assert unknown_keys({"annotations": {"muster.dev/reservations": "Strict"}}) == []
    [warning] = unknown_keys({"annotations": {"muster.dev/reservations": "greedy"}})
    assert warning.endswith("'greedy' is none of strict, reserve, besteffort; it has no effect")


def test_what_muster_writes_is_known() -> None:
    """A copy of a Job's pod has Muster's own keys without a warning."""
    assert unknown_keys({"labels": {"muster.dev/reviewed": "true"}, "annotations": {"muster.dev/node": "a"}}) == []


OF_QUEUES = {
    names.NAMESPACE_SELECTOR,
    names.QUEUE_WEIGHTS,
    names.QUEUE_LOCKED,
    names.PREEMPT_MIN_RUNTIME,
    names.RECLAIM_MIN_RUNTIME,
    names.MAX_EVICT_NOTICE,
    *names.QUEUE_LIMIT_KEYS,
}
ELSEWHERE = OF_QUEUES | names.MARKERS | {names.ROTATE}


def test_every_key_is_a_users_or_musters_own() -> None:
    """Each of Muster's own is forged by a tenant in tests/plane/test_tenant_rights.py, and gains him nothing."""
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("muster.dev/")}
    assert ours - LABELS - _OF_USERS - WRITTEN == ELSEWHERE
