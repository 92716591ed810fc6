"""The configurations that Volcano and KAI-Scheduler ship load as they are, and every name in them is accounted for."""

from pathlib import Path

import pytest
import yaml
from their_files import VOLCANO_CHART

from extender.planner.configuration.known import ACTION_ARGUMENTS, ACTIONS, METRICS, SWITCHES, Name
from extender.planner.configuration.knownplugins import PLUGINS
from extender.planner.configuration.resolve import resolve
from extender.planner.cycle import parts_of, registry, report_of
from extender.planner.framework import config
from musterctl.facts import FACTS, filled

VOLCANO = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
VOLCANO_CI = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"""
VOLCANO_OPERATORS = """
actions: "enqueue, reclaim, allocate, backfill, preempt"
tiers:
- plugins:
  - {name: priority, enabledVictim: false, enableJobStarving: true}
  - {name: gang, enablePreemptable: false}
  - {name: conformance}
  - {name: sla, arguments: {sla-waiting-time: 1h2m3s}}
- plugins:
  - {name: overcommit, arguments: {overcommit-factor: 1.5}}
  - {name: drf, enableHierarchy: true}
  - {name: predicates, arguments: {predicate.CacheEnable: true, predicate.NodePortsEnable: false}}
  - {name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}}
  - {name: nodeorder, arguments: {leastrequested.weight: 0, mostrequested.weight: 1, imagelocality.weight: 1}}
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources: nvidia.com/gpu, example.com/foo
      binpack.resources.nvidia.com/gpu: 8
      binpack.resources.example.com/foo: 3
  - {name: resourcequota}
  - {name: tdm, arguments: {tdm.revocable-zone.rz1: "10:00-21:00", tdm.evict.period: 1m}}
  - {name: usage, enablePredicate: false, arguments: {usage.weight: 5, thresholds: {cpu: 80, mem: 80}}}
  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}}
  - {name: network-topology-aware, arguments: {weight: 10, hypernode.binpack.resources.nvidia.com/gpu: 2}}
  - {name: rescheduling, arguments: {interval: 5m, strategies: [{name: lowNodeUtilization}]}}
configurations:
- name: enqueue
  arguments: {overcommit-factor: 1.1}
- name: allocate
  arguments: {predicateErrorCacheEnable: true}
- name: preempt
  arguments: {enableTopologyAwarePreemption: true, topologyAwarePreemptWorkerNum: 16}
metrics:
  type: elasticsearch
  address: https://example.com
  tls: {insecureSkipVerify: "true"}
  elasticsearch.index: metricbeat
"""
KAI = """
actions: "allocate, consolidation, reclaim, preempt, stalegangeviction"
tiers:
- plugins:
  - {name: predicates}
  - {name: proportion}
  - {name: priority}
  - {name: elastic}
  - {name: kubeflow}
  - {name: ray}
  - {name: nodeavailability}
  - {name: gpusharingorder}
  - {name: gpupack}
  - {name: resourcetype}
  - {name: subgrouporder}
  - {name: taskorder}
  - {name: nominatednode}
  - {name: dynamicresources}
  - name: nodeplacement
    arguments: {cpu: binpack, gpu: binpack}
  - {name: minruntime}
  - {name: topology}
  - {name: snapshot}
"""
KAI_OPERATORS = """
actions: allocate, consolidation, reclaim, preempt, stalegangeviction
tiers:
- plugins:
  - {name: proportion, disableQueueOrder: false, arguments: {kValue: "0.5", relcaimerSaturationMultiplier: "1.1"}}
  - {name: minruntime, arguments: {defaultReclaimMinRuntime: 10m, reclaimResolveMethod: queue}}
  - {name: nodeplacement, arguments: {cpu: spread, gpu: binpack}}
  - {name: podaffinity, disableNodeOrder: true}
queueDepthPerAction: {reclaim: 10, consolidation: 5}
usageDBConfig:
  clientType: prometheus
  connectionString: http://prometheus:9090
  usageParams: {halfLifePeriod: 168h, windowSize: 168h, windowType: sliding}
"""
FILES = [VOLCANO, VOLCANO_CHART, VOLCANO_CI, VOLCANO_OPERATORS, KAI, KAI_OPERATORS]


@pytest.mark.parametrize("text", FILES)
def test_their_files_load(text: str) -> None:
    """Without an error, and every plugin and action of theirs runs or is in the report."""
    report = report_of(text)
    assert report.errors == []
    actions, plugins = parts_of(config.parse(text))
    idle = {finding.name for finding in report.findings if finding.effect.value == "no effect"}
    running = {each.name for each in [*actions, *plugins]}
    content = yaml.safe_load(text)
    named = [part.strip() for part in content["actions"].split(",")]
    named += [plugin["name"] for tier in content["tiers"] for plugin in tier["plugins"]]
    ours = {"consolidation": "consolidate", "capacity": "proportion", "network-topology-aware": "topology"}
    assert [name for name in named if ours.get(name, name) not in running and name not in idle] == []


def test_a_switch_or_argument_without_effect_is_named_where_it_stands() -> None:
    """With a path that can be found in the file."""
    paths = {finding.path for finding in report_of(VOLCANO_OPERATORS).findings}
    assert {
        "configurations[2].arguments.enableTopologyAwarePreemption",
        "metrics",
        "tiers[0].plugins[0].enabledVictim",
        "tiers[0].plugins[1].enablePreemptable",
        "tiers[1].plugins[2].arguments.predicate.NodePortsEnable",
    } <= paths
    assert "tiers[0].plugins[0].enableJobStarving" not in paths, "a switch at its default is nothing to report"


def test_the_half_life_of_usage_is_an_argument_of_proportion() -> None:
    """KAI-Scheduler's files have it beside the plugins; what the plugin says itself counts more."""
    tiers = [{"plugins": [{"name": "proportion"}]}]
    for period, halves in (("168h", {"halfLife": "168h"}), ("0s", {}), (None, {})):
        content = {"tiers": tiers, "usageDBConfig": {"usageParams": {"halfLifePeriod": period}}}
        resolved = resolve(config.parse(yaml.safe_dump(content)), registry())
        assert [use.arguments for use in resolved.plugins if use.name == "proportion"] == [halves]


@pytest.mark.parametrize("name", PLUGINS)
def test_every_plugin_loads_with_all_its_arguments_at_their_defaults(name: str) -> None:
    """Those that have a default which can be written down; and those that must be there are passed on."""
    arguments = {each: known.default for each, known in PLUGINS[name].arguments.items() if "*" not in each}
    plugin = {"name": name, "arguments": {each: value for each, value in arguments.items() if value is not None}}
    assert report_of(yaml.safe_dump({"tiers": [{"plugins": [plugin]}]})).errors == []


@pytest.mark.parametrize(("name", "known", "ours"), [
    *((name, known, "plugins") for name, known in PLUGINS.items()),
    *((name, known, "actions") for name, known in ACTIONS.items()),
])  # fmt: skip
def test_what_muster_lacks_of_theirs_says_why(name: str, known: Name, ours: str) -> None:
    """And no other plugin or action says so."""
    assert ((known.ours or name) in getattr(registry(), ours)) is not bool(known.without)


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_loads_at_both_values(name: str) -> None:
    """It takes hooks from the plugin, or says why it has no effect."""
    for value in (True, False):
        assert report_of(yaml.safe_dump({"tiers": [{"plugins": [{"name": "priority", name: value}]}]})).errors == []
    assert SWITCHES[name].hooks or SWITCHES[name].without


def test_every_action_argument_and_field_of_metrics_loads() -> None:
    """And each is in the report."""
    configurations = [{"name": name, "arguments": dict.fromkeys(each, 1)} for name, each in ACTION_ARGUMENTS.items()]
    report = report_of(yaml.safe_dump({"configurations": configurations, "metrics": dict.fromkeys(METRICS, "x")}))
    assert report.errors == []
    idle = {finding.path for finding in report.findings}
    assert len([path for path in idle if path.startswith("configurations")]) == sum(map(len, ACTION_ARGUMENTS.values()))
    assert "metrics" in idle
    assert set(ACTION_ARGUMENTS) <= set(ACTIONS)


def test_the_page_about_configurations_has_all_names() -> None:
    """With their defaults and what they mean, as the code has them: `make generate` writes it."""
    page = (Path(__file__).parents[5] / "docs" / "scheduler-configuration.md").read_text(encoding="utf-8")
    assert filled(page, FACTS) == page


def test_sentences_are_sentences_without_their_full_stop() -> None:
    """They stand in lists and tables."""
    every = [*PLUGINS.values(), *ACTIONS.values(), *SWITCHES.values()]
    sentences = [text for each in every for text in (each.differs, each.without) if text]
    sentences += [each.without for plugin in PLUGINS.values() for each in plugin.arguments.values() if each.without]
    assert [text for text in sentences if text.endswith((".", " ")) or text[0].isspace()] == []
