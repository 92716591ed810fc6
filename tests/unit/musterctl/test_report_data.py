"""Reports for programs: the same facts as JSON and as YAML."""

import json

import pytest
import yaml

from extender.explain.report import GangQueueReport
from musterctl.output.report import print_data

REPORT = GangQueueReport("täm", "Open", 1, 0.5, 2, 0, ())


def test_json_and_yaml_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """With the names of the API."""
    print_data([REPORT], "json")
    as_json = json.loads(capsys.readouterr().out)
    print_data([REPORT], "yaml")
    text = capsys.readouterr().out
    assert yaml.safe_load(text) == as_json
    assert "täm" in text
