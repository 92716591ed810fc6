"""A pytest plugin that writes the duration of each test, and the failed tests, to the file in MUTANTS_DURATIONS.

Property tests run with few examples: coverage makes each slow, and the first ones run nearly all lines. Their duration
is scaled up to the full number of examples.
"""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

_EXAMPLES = 20
# Where hypothesis keeps the settings of a test.
_SETTINGS = "_hypothesis_internal_use_settings"
_TIMES = "times"

_duration_s: defaultdict[str, float] = defaultdict(float)
_failed: set[str] = set()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Reduce the examples of property tests."""
    for item in items:
        function = getattr(item, "obj", None)
        given = getattr(function, _SETTINGS, None)
        if isinstance(given, settings) and given.max_examples > _EXAMPLES:
            item.user_properties.append((_TIMES, given.max_examples / _EXAMPLES))
            setattr(function, _SETTINGS, settings(given, max_examples=_EXAMPLES))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up setup, call and teardown."""
    times = [value for name, value in report.user_properties if name == _TIMES and isinstance(value, float)]
    _duration_s[report.nodeid] += report.duration * sum(times or [1.0])
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file, in the process that receives all reports."""
    if not hasattr(session.config, "workerinput"):
        notes = {"duration_s": _duration_s, "failed": sorted(_failed)}
        Path(os.environ["MUTANTS_DURATIONS"]).write_text(json.dumps(notes))
