"""The chart's files: each value and each right is explained, and what they name exists."""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import fields
from prometheus_client import REGISTRY

from extender.planner.actions import ACTIONS
from extender.planner.configuration.known import ACTIONS as KNOWN_ACTIONS
from extender.planner.configuration.known import SECTIONS
from extender.planner.state.feed import FEED
from muster.api import names
from muster.api.volcano.scheduling import QueueSpec
from muster.chart import CHART
from musterctl import facts
from musterctl.chart import generated, roles
from musterctl.chart.files import FILES, policies
from musterctl.plane import rights

ROOT = Path(__file__).parents[4]
PROCESSES = (roles.WEBHOOK, roles.EXTENDER, roles.SCHEDULER, roles.CONTROLLER, roles.HISTORY, roles.WEB)
SUFFIXES = ("_bucket", "_count", "_sum", "_total")


def test_values_are_what_the_schema_says() -> None:
    """Each has a description that is a sentence, and the default that users see."""
    written = yaml.safe_load((CHART / "values.yaml").read_text())
    for path, node in generated.leaves(generated.schema()):
        found: Any = written
        for name in path.split("."):
            found = found[name]
        assert found == node["default"], path
        assert node["description"].endswith("."), path
        assert "type" in node, path


def test_the_rights_of_every_role_are_on_their_page() -> None:
    """Whoever decides about an installation finds all of them there."""
    page = (ROOT / "docs/rights.md").read_text()
    assert [name for name in roles.named_tables() if f"<!--fact {name}-->" not in page] == []


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every object of the schema that has values."""
    yield schema
    for each in schema["properties"].values():
        if "properties" in each:
            yield from nodes(each)


def test_names_that_do_not_exist_are_refused() -> None:
    """Everywhere: a value with a slip of the pen would have no effect."""
    assert all(node["additionalProperties"] is False for node in nodes(generated.schema()))


def test_the_planners_actions_are_known() -> None:
    """In an object of values; text may name an action of one's own."""
    node = generated.schema()["properties"]["extender"]["properties"]["config"]["properties"]
    known = {*ACTIONS, *KNOWN_ACTIONS}
    actions = node["actions"]["pattern"]
    assert all(
        re.search(actions, text) for text in [*known, "enqueue, allocate", " allocate ,backfill", ", ".join(known)]
    )
    assert not any(
        re.search(actions, text) for text in ("alocate", "enqueue, alocate", "allocate reclaim", "", "allocate,")
    )
    assert set(node) == {"actions", "tiers", *SECTIONS}


def test_the_fields_of_queues_are_known() -> None:
    """A queue with a slip of the pen would be made without that field."""
    spec = generated.schema()["properties"]["queues"]["items"]["properties"]["spec"]
    assert spec["additionalProperties"] is False
    assert set(spec["properties"]) == {each.encode_name for each in fields(QueueSpec)}


def metrics() -> set[str]:
    """The metrics in the code, as Prometheus names them."""
    found: set[str] = set()
    for package in ("muster", "webhook", "extender", "controller", "history", "web"):
        for path in (ROOT / package).rglob("*.py"):
            found |= set(re.findall(r'(?:Counter|Gauge|Histogram)\(\s*"(muster_\w+)"', path.read_text()))
    return found


def bare(metric: str) -> str:
    """A metric without what its kind adds."""
    return next((metric.removesuffix(each) for each in SUFFIXES if metric.endswith(each)), metric)


@pytest.mark.parametrize("name", ["alerts.yaml", "dashboard.json"])
def test_alerts_and_panels_ask_for_metrics_that_exist(name: str) -> None:
    """An alert on another never fires."""
    asked = set(re.findall(r"\bmuster_\w+", (FILES / name).read_text()))
    assert len(asked) > 8
    assert {bare(each) for each in asked} <= {bare(each) for each in metrics()}


BEGIN_LATE = {
    "muster_webhook_reviews_total",  # with the webhook's routes
    "muster_controller_reconciles_total",  # with the controller's workers
    "muster_planner_writes_total",  # with the first write of its kind, of either result
    *("muster_bind_total", "muster_filter_total", "muster_kube_requests_total"),  # by reasons and codes without number
}
"""Counters whose series are not there when their module is imported."""


@pytest.mark.parametrize("name", ["alerts.yaml", "dashboard.json"])
def test_counters_of_alerts_and_panels_begin_at_zero(name: str) -> None:
    """Prometheus sees no increase in a series that begins with what happened first, such as the first evictions."""
    for module in ("extender.evictions", "extender.barrier", "extender.cycles", "controller.job.effects"):
        importlib.import_module(module)
    asked = set(re.findall(r"(?:rate|increase)\((muster_\w+_total)", (FILES / name).read_text()))
    assert asked
    for metric in asked - BEGIN_LATE:
        [found] = [each for each in REGISTRY.collect() if f"{each.name}_total" == metric]
        assert found.samples, metric


def test_an_alert_warns_of_budgets_whose_usage_is_lost() -> None:
    """The recorder reports if its store outlives its pod; without budgets nobody is warned."""
    [rule] = [each for each in facts.alert_rules() if each["alert"] == "MusterBudgetForgotten"]
    lost, budgets = rule["expr"].split(" and on (cluster, namespace) ", 1)
    assert lost.endswith("(muster_history_durable) == 0")
    assert "muster_queue_budget_known" in budgets


def test_alerts_say_what_to_do() -> None:
    """A summary, a description and a severity each."""
    for rule in facts.alert_rules():
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in {"warning", "critical"}
    for row in facts.alert_rows():
        assert all(row)
        assert not re.search(r"[{}$]", "".join(row)), "a page has no templates"
    json.loads((FILES / "dashboard.json").read_text())


@pytest.mark.parametrize("process", PROCESSES)
def test_each_right_has_a_reason_and_no_star(process: str) -> None:
    """Stars grow by themselves."""
    for rule in roles.rules(process):
        assert len(rule.why) > 10
        assert "*" not in {*rule.api_groups, *rule.resources, *rule.verbs}


def test_what_the_extender_watches_it_may_watch() -> None:
    """Whoever adds a kind to the feed adds it to charts/muster/files/roles/extender.yaml."""
    granted = {
        (group, resource, verb)
        for rule in roles.rules(roles.EXTENDER)
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
    }
    for fed in FEED:
        assert {(fed.resource.group, fed.resource.plural, verb) for verb in ("list", "watch")} <= granted


def test_users_write_neither_placements_nor_status() -> None:
    """At no level."""
    for level in ("view", "edit", "admin"):
        for rule in roles.named_tables()[f"clusterrole-muster-{level}-rules"]:
            if set(rule.verbs) - {"get", "list", "watch"}:
                assert "placements" not in rule.resources
                assert not [each for each in rule.resources if "/" in each]


def test_policies_ask_for_verbs_that_roles_grant() -> None:
    """A verb of our own that nobody has would stop Muster."""
    asked = set(re.findall(r"check\('(\w+)'\)|'(\w+)' : '(\w+)'", json.dumps(policies())))
    verbs = {verb for found in asked for verb in found if verb}
    granted = {verb for process in PROCESSES for rule in roles.rules(process) if rule.implicit for verb in rule.verbs}
    assert verbs == {"charge", "decide", "keep", "pin", "release"}
    assert verbs <= granted


def test_the_policy_guards_what_pods_are_charged_by() -> None:
    """A key that is missing there could be written by anybody; one more would hinder others for nothing."""
    [keys] = [keys for keys in re.findall(r"\[([^]]*)\]\.exists\(key", json.dumps(policies())) if names.QUEUE in keys]
    assert sorted(re.findall(r"'([^']+)'", keys)) == sorted(names.CHARGED)


def test_installing_needs_what_is_granted() -> None:
    """`muster up` asks for all that it grants before it starts."""
    needed = rights.needed()
    assert {("placements.muster.dev", "decide"), ("jobs.batch.volcano.sh/status", "patch")} <= {*needed}
    assert {("serviceaccounts/token", "create"), ("pods/binding", "create")} <= {*needed}


@pytest.mark.parametrize("shared", [False, True])
def test_each_process_of_a_plane_has_one_account(*, shared: bool) -> None:
    """Two accounts of one process would fight for its binding."""
    used = {account.name: account for account in rights.accounts(shared=shared).values()}
    found = roles.objects("ns", list(used.values()))
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in found]
    assert len(names) == len(set(names))
    pool = roles.of_pool("b", "ns")
    assert {each["kind"] for each in pool} == {"Role", "RoleBinding", "ConfigMap"}
    for each in [*found, *pool]:
        assert "<" not in json.dumps(each), "each name is filled in"
        assert not [rule for rule in each.get("rules", ()) if rule.keys() & {"why", "implicit"}]
    both = [roles.OWN_EXTENDER, roles.ACCOUNTS[roles.SCHEDULER]]
    with pytest.raises(ValueError, match="a process may have only one account"):
        roles.objects("ns", both)
