"""Every alert of the chart that processes can cause, in a real Prometheus: it fires as something breaks, and ends.

Expressions are as shipped, but for the hour that a queue has to starve and the minutes that a history may be silent;
`for` is a second. `test_alert_rules.py` has
all alerts with the times that they are shipped with, and those that need 45 broken gangs, a full disk, or a defect of
Muster's.
"""

import json
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from beside import prometheus
from beside.neighbour import Neighbours
from beside.prometheus import Prometheus
from gang_jobs import attempt, job
from page_server import PageServer, page_server
from pairs import ended, resettled, started

from certs.authority import Authority
from charts import rendered
from muster.api import names
from muster.api.kubernetes.core import CONFIG_MAPS, NAMESPACES
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import Forbidden, Invalid
from musterctl.plane.health import wait_until
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.state import ALL, HISTORY, history_of

pytestmark = [pytest.mark.neighbour, pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing())]
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
NAMESPACE = "alerts"
CONFIG = "tiers:\n- plugins: [{name: gang}, {name: priority}, {name: proportion}, {name: predicates}, {name: faulty}]\n"
WAIT_S = 240.0
ONLY_SYNTHETIC = {"MusterBarriersTimeOut", "MusterControllerFails", "MusterRecordingFails"}
ALL_PARTS: JSON = {"web": {"enabled": True}, "history": {"enabled": True}}
PLUGIN = '''
"""A plugin of somebody's for the planner, which fails while a file is there."""
from pathlib import Path

class Planning:
    name = "faulty"
    def __init__(self, arguments): ...
    def on_session_open(self, session):
        if Path(__file__).with_name("broken").exists():
            raise RuntimeError("a plugin of somebody's")
    def on_session_close(self, session): ...
'''
POINTS = "[muster.extender.plugins]\nfaulty = faulty:Planning\n"


@dataclass
class World:
    """A plane that is watched, and where its plugins are."""

    plane: Plane
    client: Client
    watching: Prometheus
    packages: Path
    second: int
    """The port of a second extender's metrics, which is scraped, too."""
    page: PageServer


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a package that every process of the plane finds, as if pip had installed it."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "faulty.py").write_text(PLUGIN)
    info = folder / "faulty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=":")
        yield folder


@pytest.fixture(scope="module")
def page(packages: Path, module_plane: Callable[..., Plane], wait_for: WaitFor) -> Iterator[tuple[Plane, PageServer]]:
    """Two nodes with all parts of Muster, and the page."""
    del packages  # they must be there before
    plane = module_plane(ALL, nodes=2, planning_config=CONFIG)
    with page_server(plane, plane.root / "page", wait_for) as server:
        yield plane, server


@pytest.fixture(scope="module")
def world(packages: Path, page: tuple[Plane, PageServer], neighbours: Neighbours, wait_for: WaitFor) -> World:
    """The same, and a Prometheus with the chart's rules that waits for nothing."""
    plane, server = page
    client = plane.client()
    client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    (second,) = free_ports(1)
    ports = plane.state.ports
    objects = rendered({"metrics": {"serviceMonitors": True, "rules": True}, **ALL_PARTS})
    scraped = prometheus.jobs(
        objects,
        {
            "webhook": [f"127.0.0.1:{ports['webhook-status']}"],
            "scheduler": [f"127.0.0.1:{ports['extender-status']}", f"127.0.0.1:{second}"],
            "controller": [f"127.0.0.1:{ports['controller-status']}"],
            "web/status": [f"127.0.0.1:{server.status_port}"],
            "web/history": [f"127.0.0.1:{ports['history-status']}"],
        },
    )
    one = Prometheus.start(neighbours, plane, scraped, quick(prometheus.rules(objects)))
    wait_for(one.ready, WAIT_S, "Prometheus to serve")
    names = ("webhook", "scheduler", "controller", "web", "web-history")
    wait_for(lambda: one.healthy() == {f"muster-{name}": 1 for name in names}, WAIT_S, "targets")
    wait_for(lambda: not one.firing(), WAIT_S, f"no alert, but there are {one.firing()}")
    return World(plane, client, one, packages, second, server)


def quick(rules: JSON) -> JSON:
    """The rules with a second instead of minutes, and a queue starves after three."""
    for rule in prometheus.each_rule(rules):
        rule["expr"] = rule["expr"].replace("> 3600", "> 3").replace("> 120", "> 20")
        if "for" in rule:
            rule["for"] = "1s"
    return rules


@contextmanager
def part_is_dead(world: World, name: str) -> Iterator[None]:
    """A process of the plane's is killed, and started again afterwards."""
    world.plane.part(name).kill()
    try:
        yield
    finally:
        world.plane.part(name).start()


@contextmanager
def second_extender(world: World, *, folder: Path) -> Iterator[None]:
    """Another extender with the same host name, which takes the kube-scheduler that leads for its own."""
    (port,) = free_ports(1)
    fields: dict[str, object] = {"port": port, "statusPort": world.second}
    command = resettled(world.plane.commandlines.command("extender"), folder / "second.yaml", fields)
    process = started(command, folder / "second.log")
    try:
        yield
    finally:
        ended(process)


@contextmanager
def planning_fails(world: World) -> Iterator[None]:
    """A plugin of the planner's raises in each cycle."""
    flag = world.packages / "broken"
    flag.touch()
    world.client.create(POD_GROUPS, group("new"), NAMESPACE)  # a reason to plan
    try:
        yield
    finally:
        flag.unlink()


@contextmanager
def look_ups_fail(world: World) -> Iterator[None]:
    """A webhook of somebody's for pods does not answer, so the pods of a new Job cannot be tried."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": "pods.example.com", "rules": [rule], "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1"}, "timeoutSeconds": 1,
    }  # fmt: skip
    world.client.create(WEBHOOK_CONFIGURATIONS[1], {"metadata": {"name": "example"}, "webhooks": [hook]})
    try:
        for number in range(100):  # the API server takes a moment to call the other webhook
            manifest = json.dumps(job(f"refused-{number}", NAMESPACE, replicas=1, gpus=0))
            made = world.plane.kubectl("create", f"--namespace={NAMESPACE}", "--filename=-", stdin=manifest)
            if "could not make the look-ups" in made.stderr:
                break
        assert "could not make the look-ups" in made.stderr
        yield
    finally:
        world.client.delete(WEBHOOK_CONFIGURATIONS[1], "example")


@contextmanager
def writes_are_refused(world: World) -> Iterator[None]:
    """A policy of somebody's refuses what the planner writes about gangs that wait."""
    rule = {"apiGroups": ["scheduling.volcano.sh"], "apiVersions": ["*"], "operations": ["UPDATE"]}
    where = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [NAMESPACE]}]}
    policy = {
        "matchConstraints": {
            "namespaceSelector": where, "resourceRules": [{**rule, "resources": ["podgroups", "podgroups/status"]}]
        },
        "validations": [{"expression": "false", "message": "no"}],
    }  # fmt: skip
    kinds = {
        "ValidatingAdmissionPolicy": policy,
        "ValidatingAdmissionPolicyBinding": {"policyName": "no-words", "validationActions": ["Deny"]},
    }
    objects = [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "no-words"}, "spec": spec}
        for kind, spec in kinds.items()
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    world.plane.kubectl("apply", "--filename=-", stdin=text).check_returncode()
    world.client.create(POD_GROUPS, group("probe", minimum=100), NAMESPACE)
    wait_until(world.plane.part("kube-apiserver"), lambda: _accepted(world, "probe"), SOON_S)
    for number in range(UNHEARD):
        world.client.create(POD_GROUPS, group(f"unheard-{number}", minimum=100), NAMESPACE)
    try:
        yield
    finally:
        world.plane.kubectl("delete", "--filename=-", stdin=text).check_returncode()
        for name in ("probe", *(f"unheard-{number}" for number in range(UNHEARD))):
            world.client.delete(POD_GROUPS, name, NAMESPACE)


def _accepted(world: World, name: str) -> str:
    """Empty once a policy refuses updates of the PodGroup: the API server knows a new one after some seconds."""
    try:
        world.client.merge_patch(POD_GROUPS, name, {"metadata": {"labels": {"asked": "once"}}}, NAMESPACE)
    except (Forbidden, Invalid):
        return ""
    return f"PodGroup {name} can still be updated"


@contextmanager
def set_aside(world: World) -> Iterator[None]:
    """A PodGroup has an absurd minimum, which admission did not see."""
    world.client.create(POD_GROUPS, group("absurd"), NAMESPACE)
    absurd = {"spec": {"minMember": 2**31 - 1}}
    attempt(lambda: world.client.merge_patch(POD_GROUPS, "absurd", absurd, NAMESPACE))
    try:
        yield
    finally:
        world.client.delete(POD_GROUPS, "absurd", NAMESPACE)


@contextmanager
def starving(world: World) -> Iterator[None]:
    """A gang waits in a queue that uses nothing of what it deserves."""
    world.client.create(QUEUES, {"metadata": {"name": "poor"}, "spec": {"deserved": {"nvidia.com/gpu": 32}}})
    manifest = job("starves", NAMESPACE, replicas=9)
    manifest["spec"]["queue"] = "poor"
    world.client.create(JOBS, manifest, NAMESPACE)
    try:
        yield
    finally:
        world.client.delete(JOBS, "starves", NAMESPACE)


@contextmanager
def configuration(world: World, text: str) -> Iterator[None]:
    """The planner's configuration is this text for a while."""
    world.plane.commandlines.write_planning(text)
    try:
        yield
    finally:
        world.plane.commandlines.write_planning(CONFIG)


@contextmanager
def page_hangs(world: World) -> Iterator[None]:
    """The process of the page stands still."""
    world.page.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        world.page.process.send_signal(signal.SIGCONT)


@contextmanager
def history_is_locked(world: World) -> Iterator[None]:
    """Somebody holds the file of the history for himself, so that the recorder cannot write."""
    file = history_of(world.plane.root).removeprefix("sqlite:///")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def budget_of(world: World, hours: float) -> Iterator[None]:
    """A queue has a budget of so many GPU hours a day, of which a gang uses eight in each hour."""
    annotations = {names.BUDGET: f"nvidia.com/gpu={hours}h/day"}
    world.client.create(QUEUES, {"metadata": {"name": "paid", "annotations": annotations}})
    manifest = job("pays", NAMESPACE, replicas=1)
    manifest["spec"]["queue"] = "paid"
    world.client.create(JOBS, manifest, NAMESPACE)
    try:
        yield
    finally:
        world.client.delete(JOBS, "pays", NAMESPACE)
        world.client.merge_patch(QUEUES, "paid", {"metadata": {"annotations": {names.BUDGET: None}}})
        attempt(lambda: world.client.delete(QUEUES, "paid"))


@contextmanager
def usage_is_gone(world: World) -> Iterator[None]:
    """A queue has a budget, the recorder is dead, and somebody has deleted what it has published."""
    with budget_of(world, 1000), part_is_dead(world, HISTORY):
        attempt(lambda: world.client.delete(CONFIG_MAPS, names.USAGE, names.SYSTEM_NAMESPACE))
        yield


@contextmanager
def certificate_of(world: World, days: int) -> Iterator[None]:
    """The webhook's certificate ends in so many days, and is a new one of many afterwards."""
    folder = world.plane.root / "pki"
    for life, then in ((timedelta(days=days), True), (timedelta(days=90), False)):
        pair = Authority.load(folder).issue(
            "webhook", dns_names=["localhost"], ips=["127.0.0.1"], server=True, life=life
        )
        pair.save(folder, "webhook")
        world.plane.kubectl("run", "asks", "--image=none", "--labels=muster.dev/queue=default", "--dry-run=server")
        if then:
            yield


@contextmanager
def certificates_are_missing(world: World, *, folder: Path) -> Iterator[None]:
    """The controller is to look after the certificates of another issuer, which has made none yet."""
    objects = rendered({"certificates": {"mode": "certManager"}})
    rights = [each for each in objects if each["metadata"]["name"] == "muster-certificates"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": rights})
    world.plane.kubectl("apply", "--server-side", "--filename=-", stdin=text).check_returncode()
    world.plane.part("controller").stop()
    fields: dict[str, object] = {
        "certSecret": names.CERTIFICATES, "certDnsName": ["127.0.0.1"], "certIssuer": "external",
    }  # fmt: skip
    command = resettled(world.plane.commandlines.command("controller"), folder / "controller.yaml", fields)
    process = started(command, folder / "controller.log")
    try:
        yield
    finally:
        ended(process)
        world.plane.part("controller").start()


def group(name: str, minimum: int = 1) -> JSON:
    """A PodGroup without pods."""
    return {"metadata": {"name": name}, "spec": {"minMember": minimum, "queue": "default"}}


CAUSES: dict[str, Callable[[World, Path], Any]] = {
    "MusterWebhookDown": lambda world, _: part_is_dead(world, "webhook"),
    "MusterControllerIdle": lambda world, _: part_is_dead(world, "controller"),
    "MusterNobodySchedules": lambda world, _: part_is_dead(world, "extender"),
    "MusterTwoSchedule": lambda world, folder: second_extender(world, folder=folder),
    "MusterWebhookFails": lambda world, _: look_ups_fail(world),
    "MusterPlanningFails": lambda world, _: planning_fails(world),
    "MusterWritesFail": lambda world, _: writes_are_refused(world),
    "MusterObjectsSetAside": lambda world, _: set_aside(world),
    "MusterQueueStarves": lambda world, _: starving(world),
    "MusterConfigurationRefused": lambda world, _: configuration(world, "actions: alocate\n"),
    "MusterHistoryDown": lambda world, _: part_is_dead(world, HISTORY),
    "MusterHistoryNotWritten": lambda world, _: history_is_locked(world),
    "MusterWebDown": lambda world, _: page_hangs(world),
    "MusterBudgetNearlyUsed": lambda world, _: budget_of(world, 0.1),
    "MusterBudgetUsed": lambda world, _: budget_of(world, 0.001),
    "MusterBudgetNotKnown": lambda world, _: usage_is_gone(world),
    "MusterCertificateEnds": lambda world, _: certificate_of(world, 13),
    "MusterCertificatesAreWrong": lambda world, folder: certificates_are_missing(world, folder=folder),
}
SOON_S = 60.0
UNHEARD = 30
"""Gangs whose status cannot be written: each is tried ever more rarely, in the end once a minute."""
LASTS = {"MusterWebhookFails", "MusterPlanningFails", "MusterWritesFail"}
"""Alerts on what has happened in the last minutes: they end too late for a test."""


def test_every_alert_has_a_cause() -> None:
    """Whoever adds one says here how it comes about."""
    rules = prometheus.rules(rendered({"metrics": {"rules": True}, **ALL_PARTS}))
    assert {rule["alert"] for rule in prometheus.each_rule(rules)} == CAUSES.keys() | ONLY_SYNTHETIC


@pytest.mark.parametrize("name", CAUSES)
def test_an_alert_fires_and_ends(name: str, world: World, wait_for: WaitFor, tmp_path: Path) -> None:
    """Something breaks in a process, the metric says it, and Prometheus has the alert."""
    with CAUSES[name](world, tmp_path):
        wait_for(lambda: name in world.watching.firing(), WAIT_S, name)
    if name not in LASTS:
        wait_for(lambda: name not in world.watching.firing(), WAIT_S, f"the end of {name}")
