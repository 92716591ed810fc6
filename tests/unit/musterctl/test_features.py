"""`muster features`, and docs/features.md: each feature with its maturity, and how it is switched off."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from extender.planner import api as planner
from muster.api import names
from musterctl import settings
from musterctl.app import main
from musterctl.chart.generated import leaves, schema
from musterctl.commands.features import FEATURES, INTERNAL, Feature
from musterctl.generate import wire_names

ROOT = Path(__file__).parents[3]
SWITCHES = {
    *(value for value, _ in leaves(schema())),
    *(value for value in vars(names).values() if isinstance(value, str)),
    *(row[0].strip("`") for process in settings.PROCESSES for row in settings.rows(process)),
    *planner.ACTIONS,
    *planner.PLUGINS,
}
"""Values of the chart, labels and annotations, settings, actions and plugins."""


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_feature_is_switched_off_by_something_that_exists(feature: Feature) -> None:
    """Its page and its version exist, too."""
    switches = [text.partition(":")[0] for text in re.findall(r"`([^`]+)`", feature.off)]
    assert switches
    assert {*switches} <= SWITCHES
    assert (ROOT / "docs" / feature.page.partition("#")[0]).is_file()
    assert f"\n## {feature.since} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_each_name_has_one_maturity() -> None:
    """It belongs to one feature, or only Muster writes it."""
    assert sorted([*INTERNAL, *(name for each in FEATURES for name in each.names)]) == wire_names()


def test_features_are_listed() -> None:
    """All of them, or those of one maturity, as a table or as data."""
    assert len({feature.name for feature in FEATURES}) == len(FEATURES)
    table = CliRunner().invoke(main, ["features"]).output.splitlines()
    assert table[0].split() == ["FEATURE", "MATURITY", "SINCE", "HOW", "TO", "DISABLE", "PAGE"]
    assert len(table) == len(FEATURES) + 1
    found = json.loads(CliRunner().invoke(main, ["features", "--maturity", "alpha", "-o", "json"]).output)
    assert [each["name"] for each in found["features"]] == [each.name for each in FEATURES if each.maturity == "alpha"]
