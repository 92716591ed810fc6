"""What is wrong with a configuration is said with its path and with what would be right, all at once."""

from importlib.metadata import EntryPoint

import pytest

from extender.planner.cycle import parts_of, registry, report_of
from extender.planner.framework import config
from extender.planner.framework import registry as names

NAMES = """
actions: "enqueue, elect, allocate,"
tiers:
- plugin: []
- plugins:
  - {name: gangs}
  - {name: priority, enableJobOrders: false, enableTaskOrder: "false"}
  - {name: nodeplacement, arguments: {tpu: binpack}}
  - {name: tdm, arguments: {tdm.revocable-zones: x}}
configurations:
- {name: allocate, arguments: {errorCache: true}}
- {name: elect}
metrics: {kind: prometheus}
queueDepth: {}
usageDBConfig: {usageParams: {halfLife: 1h}}
"""


def test_every_unknown_name_is_an_error() -> None:
    """Each with its path."""
    assert [error.partition(";")[0] for error in report_of(NAMES).errors] == [
        "tiers[0].plugin: there is no such field",
        "actions: there is no action 'elect'",
        "actions: there is no action ''",
        "tiers[1].plugins[0]: there is no plugin 'gangs'",
        "tiers[1].plugins[1].enableJobOrders: there is no field 'enableJobOrders'",
        "tiers[1].plugins[1].enableTaskOrder: must be true or false, and is 'false'",
        "tiers[1].plugins[3].arguments.tdm.revocable-zones: there is no argument of plugin tdm 'tdm.revocable-zones'",
        "configurations[0].arguments.errorCache: there is no argument of action allocate 'errorCache'",
        "configurations[1].name: there is no action 'elect'",
        "metrics.kind: there is no field 'kind'",
        "queueDepth: there is no field 'queueDepth'",
        "usageDBConfig.usageParams.halfLife: there is no field 'usageParams.halfLife'",
        "tiers[1].plugins[2]: plugin 'nodeplacement' has no argument 'tpu'",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("actions: [allocate]", 'actions: must be one text with commas, as in "enqueue, allocate"'),
        ("- a", "the file: must have fields, as in `name: value`, and is ['a']"),
        ("tiers: {plugins: []}", "tiers: must be a list"),
        ("tiers: [{plugins: [{arguments: {}}]}]", "tiers[0].plugins[0].name: must be the name of a plugin"),
        ("tiers: [{plugins: [{name: tdm, arguments: 3}]}]", "tiers[0].plugins[0].arguments: must have fields, as in"),
        ("tiers: [", "this is no YAML: "),
    ],
)
def test_a_wrong_shape_is_an_error(text: str, error: str) -> None:
    """With what it must be."""
    assert [each.startswith(error) for each in report_of(text).errors] == [True]


def test_the_valid_names_stand_with_the_error() -> None:
    """Those of Muster and of both projects."""
    [error] = report_of("actions: alocate").errors
    assert error.endswith(
        "valid actions: allocate, backfill, consolidate, consolidation, enqueue, gangpreempt, gangreclaim, preempt,"
        " reclaim, repair, shuffle, stalegangeviction"
    )


@pytest.mark.parametrize(
    ("plugin", "argument"),
    [(name, argument) for name in registry().plugins for argument in registry().own_arguments(name)],
)
def test_an_argument_that_the_documentation_lists_is_taken_with_its_default(plugin: str, argument: str) -> None:
    """Numbers are written as such; without a default any text of its kind does."""
    default = registry().own_arguments(plugin)[argument].default or "168h"
    value = int(default) if default.isdigit() else default
    assert registry().plugin(plugin, {argument: value})
    report = report_of(f"tiers: [{{plugins: [{{name: {plugin}, arguments: {{{argument}: {value}}}}}]}}]")
    assert not report.errors


LATER = "actions: enqueue, tidy\ntiers: [{plugins: [{name: quietnodes}, {name: nobodys}]}]\n"


def test_what_came_later_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a file and the planner agree: neither takes half of it."""
    report_of("")  # the process has looked at its packages
    later = {names.PLUGIN_GROUP: "quietnodes", names.ACTION_GROUP: "tidy"}
    monkeypatch.setattr(names, "entry_points", lambda group: [EntryPoint(later[group], "absent:Thing", group)])
    action, plugin, unknown = report_of(LATER).errors
    for error, name in ((action, "there is no action 'tidy'"), (plugin, "there is no plugin 'quietnodes'")):
        assert name in error
        assert error.endswith("it was installed after this process started, which knows it after a restart")
    assert unknown.startswith("tiers[0].plugins[1]: there is no plugin 'nobodys'; valid plugins: ")
    assert "restart" not in unknown
    with pytest.raises(ValueError, match="quietnodes"):
        parts_of(config.parse(LATER))
