"""What is wrong with a configuration is said with its path and with what would be right, all at once."""

from importlib.metadata import EntryPoint

import pytest

from extender.planner.configuration.build import SwitchedPlugin
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
- {name: elect}
- {name: allocate, arguments: {errorCache: true}}
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
        "tiers[1].plugins[1].enableTaskOrder: must be true or false, but is 'false'",
        "tiers[1].plugins[3].arguments.tdm.revocable-zones: there is no argument of plugin tdm 'tdm.revocable-zones'",
        "configurations[0].name: there is no action 'elect'",
        "configurations[1].arguments.errorCache: there is no argument of action allocate 'errorCache'",
        "metrics.kind: there is no field 'kind'",
        "queueDepth: there is no field 'queueDepth'",
        "usageDBConfig.usageParams.halfLife: there is no field 'usageParams.halfLife'",
        "tiers[1].plugins[2]: plugin 'nodeplacement' has no argument 'tpu'",
    ]


@pytest.mark.parametrize(("text", "error"), [
    ("actions: [allocate]", 'actions: must be a comma-separated string, such as "enqueue, allocate"'),
    ("- a", "the file: must have fields, as in `name: value`, but is ['a']"),
    ("tiers: {plugins: []}", "tiers: must be a list"),
    ("tiers: [{plugins: [{arguments: {}}]}]", "tiers[0].plugins[0].name: must be the name of a plugin"),
    ("tiers: [{plugins: [{name: tdm, arguments: 3}]}]", "tiers[0].plugins[0].arguments: must have fields, as in"),
    ("tiers: [", "the text is not YAML: "),
])  # fmt: skip
def test_a_wrong_shape_is_an_error(text: str, error: str) -> None:
    """With what it must be."""
    assert [each.startswith(error) for each in report_of(text).errors] == [True]


def test_the_valid_names_stand_with_the_error() -> None:
    """Those of Muster and of both projects."""
    [error] = report_of("actions: alocate").errors
    names = (
        "allocate, backfill, consolidate, consolidation, enqueue, gangpreempt, gangreclaim, preempt, reclaim, repair"
    )
    assert error.endswith(f"valid actions: {names}, shuffle, stalegangeviction")


@pytest.mark.parametrize(("plugin", "argument"), [
    (name, argument) for name in registry().plugins for argument in registry().own_arguments(name)
])  # fmt: skip
def test_an_argument_that_the_documentation_lists_is_taken_with_its_default(plugin: str, argument: str) -> None:
    """Numbers are written as such; without a default any text of its kind does."""
    default = registry().own_arguments(plugin)[argument].default or "168h"
    value = int(default) if default.isdigit() else default
    assert registry().plugin(plugin, {argument: value})
    assert not report_of(f"tiers: [{{plugins: [{{name: {plugin}, arguments: {{{argument}: {value}}}}}]}}]").errors


LATER = "actions: enqueue, tidy\ntiers: [{plugins: [{name: quietnodes}, {name: nobodys}]}]\n"


def test_what_came_later_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a file and the planner agree: neither takes half of it."""
    report_of("")  # the process has looked at its packages
    later = {names.PLUGIN_GROUP: "quietnodes", names.ACTION_GROUP: "tidy"}
    monkeypatch.setattr(names, "entry_points", lambda group: [EntryPoint(later[group], "absent:Thing", group)])
    action, plugin, unknown = report_of(LATER).errors
    for error, name in ((action, "there is no action 'tidy'"), (plugin, "there is no plugin 'quietnodes'")):
        assert name in error
        assert error.endswith("the package was installed after this process started: restart the process")
    assert unknown.startswith("tiers[0].plugins[1]: there is no plugin 'nobodys'; valid plugins: ")
    assert "restart" not in unknown
    with pytest.raises(ValueError, match="quietnodes"):
        parts_of(config.parse(LATER))


DIFFERENT = """
actions: "gangpreempt, shuffle, allocate, allocate"
tiers:
- plugins:
  - {name: capacity, arguments: {ancestorReclaimLevel: 1}, enableHierarchy: true, enableJobOrder: false}
  - {name: proportion}
  - {name: gang, enablePreemptable: false}
  - {name: predicates, enablePredicate: false}
  - {name: tdm, arguments: {tdm.evict.period: 1m}, enableHierarchy: true}
configurations:
- {name: enqueue, arguments: {overcommit-factor: 1.1}}
metrics: {type: prometheus}
queueDepthPerAction: {}
usageDBConfig: {usageParams: {halfLifePeriod: 1h}}
"""


def test_the_report_has_each_name_that_differs_or_has_no_effect() -> None:
    """Other meanings first; a name at its default, or an empty section, is in none."""
    assert [line[: line.index("different") + 9] for line in report_of(DIFFERENT).lines() if "different: " in line] == [
        "actions: gangpreempt: different",
        "actions: allocate: different",
        "actions: allocate: different",
        "actions: enqueue: different",
        "tiers[0].plugins[0]: capacity: different",
        "tiers[0].plugins[1]: proportion: different",
        "tiers[0].plugins[1]: proportion: different",
        "tiers[0].plugins[2]: gang: different",
        "tiers[0].plugins[2].enablePreemptable: different",
        "tiers: dynamicresources: different",
        "tiers: topology: different",
        "usageDBConfig: different",
    ]
    assert [line.partition(": no effect: ")[::2] for line in report_of(DIFFERENT).lines() if "no effect" in line] == [
        ("actions: shuffle", "Muster evicts pods only if a gang starts on the freed capacity"),
        (
            "tiers[0].plugins[0].arguments.ancestorReclaimLevel",
            "reclaim always compares queues at the level below their common ancestor",
        ),
        ("tiers[0].plugins[0].enableHierarchy", "the usage of a queue always counts towards its parent queues"),
        ("tiers[0].plugins[3].enablePredicate", "requirements of pods and gangs hold under every configuration"),
        (
            "tiers[0].plugins[4]: tdm",
            "Muster does not support time-of-day zones, and its eviction actions choose the victims",
        ),
        ("configurations[0].arguments.overcommit-factor", "this argument belongs to the plugin overcommit"),
        ("metrics", "no plugin of Muster reads the load of nodes"),
    ]
    assert "tiers: gang: different: the plugin is always active, and first: members start together or not at all" in [
        *report_of("tiers: [{plugins: [{name: predicates}]}]").lines()
    ]
    actions, plugins = parts_of(config.parse(DIFFERENT))
    assert [action.name for action in actions][1:5] == ["enqueue", "preempt", "allocate", "recall"]
    assert [plugin.name for plugin in plugins] == ["proportion", "gang", "predicates", "dynamicresources", "topology"]
    switched = next(each for each in plugins if isinstance(each, SwitchedPlugin) and each.name == "proportion")
    assert switched.plugin.usage.half_life_s == 3600
