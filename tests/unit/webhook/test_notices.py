"""Eviction notices that could not be kept are refused where they are written."""

import pytest

from muster.resources.runtime import notice_s
from webhook.validate.pod import check_annotations

KEY = "muster.dev/evict-notice"


@pytest.mark.parametrize("text", ["300s", "1h", "0s", "1m30s"])
def test_what_can_be_kept_passes(text: str) -> None:
    """Up to an hour."""
    assert not list(check_annotations({KEY: text}, [({KEY: text}, "spec.template.metadata.annotations", 1)]))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("61m", "must be at most 3600 (seconds; limit 'eviction notice')"),
        ("3600.5s", "must be at most 3600 (seconds; limit 'eviction notice')"),
        ("soon", "'soon' is not a duration; write it like 30s, 5m or 1h30m"),
        ("-5s", "'-5s' is not a duration; write it like 30s, 5m or 1h30m"),
    ],
)
def test_the_rest_is_refused_with_its_place(text: str, why: str) -> None:
    """On the workload and on its template."""
    errors = list(check_annotations({KEY: text}, [({KEY: text}, "spec.template.metadata.annotations", 1)]))
    assert [error.path for error in errors] == [
        f"metadata.annotations[{KEY}]",
        f"spec.template.metadata.annotations[{KEY}]",
    ]
    assert {error.message for error in errors} == {why}


@pytest.mark.parametrize(("text", "seconds"), [("2h", 3600), ("90s", 90), ("", None), (None, None), ("soon", None)])
def test_where_admission_was_bypassed_the_limit_counts(text: str | None, seconds: float | None) -> None:
    """What cannot be read is no notice."""
    assert notice_s(text) == seconds
