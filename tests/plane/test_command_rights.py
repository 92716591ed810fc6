"""Each command of users is run with just the rights that docs/rights.md has for it, and asks for no others."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from typing import Any

import audits
import pytest
import yaml
from click.testing import CliRunner
from jobs import command as order
from jobs import job, task
from tenants import CLUSTER_ROLES, JSON, ROLES, bind, refusal, user
from train_jobs import RUN

from extender.explain.clusterdump import READ
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import NAMESPACES, PRIORITY_CLASSES
from muster.api.kubernetes.reviews import SUBJECT_ACCESS_REVIEWS
from muster.api.volcano.batch import COMMANDS as COMMAND_KIND
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.api.volcano.scheduling import QUEUES as QUEUE_KIND
from muster.api.volcano.topology import TOPOLOGIES
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.app import main
from musterctl.chart import roles
from musterctl.chart.roles import VIEW_CLUSTER, VIEW_QUEUES, WHOLE, CommandRights, rights_of_commands
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
NAMESPACE = audits.USERS
"""Their namespace, and a queue of two GPUs."""
UPDATE_JOBS = "update jobs.batch.volcano.sh"
"""Only admission asks for it: who commands a Job may change it."""
MORE_THAN_A_NODE_HAS = 9
"""GPUs."""
ELSEWHERE = ("queues.scheduling.volcano.sh", "clustertrainingruntimes.trainer.kubeflow.org")
"""Kinds without a namespace."""
SPACE = f"--namespace={NAMESPACE}"
COMMANDS = rights_of_commands()
LEVELS = ("view", "edit", "admin")
"""Of roles for users; each has what the one before has."""
TYPED: dict[str, tuple[str, ...]] = {
    "muster ps": ("ps",),
    "muster logs": ("logs", "runs"),
    "muster cancel": ("cancel", "job.batch.volcano.sh/goes"),
    "muster hold": ("hold", "job.batch.volcano.sh/runs"),
    "muster release": ("release", "job.batch.volcano.sh/runs"),
    "muster move": ("move", "podgroup/moves", f"--queue={NAMESPACE}"),
    "muster priority": ("priority", "job.batch.volcano.sh/waits", f"--class={NAMESPACE}"),
    "muster resize": ("resize", "job.batch.volcano.sh/waits", "--size=2"),
    "muster job run": ("job", "run", "new", "--image=none"),
    "muster job list": ("job", "list"),
    "muster job view": ("job", "view", "runs"),
    "muster job suspend": ("job", "suspend", "runs"),
    "muster job resume": ("job", "resume", "runs"),
    "muster job delete": ("job", "delete", "goes"),
    "muster train": ("train", "FILE.py", "--nodes=2", "--gpus=1", f"--queue={NAMESPACE}", f"--annotation={RUN}=2"),
    "muster explain": ("explain", "job", "waits", SPACE),
    "muster topo": ("topo",),
    "muster simulate": ("simulate", "-f", "FILE.yaml", SPACE),
    "muster queue top": ("queue", "top"),
    "muster queue top, for own gangs": ("queue", "top"),
    "muster queue list": ("queue", "list"),
    "muster queue view": ("queue", "view", "default"),
    "muster queue explain": ("queue", "explain", "default"),
    "muster snapshot": ("snapshot", "-o", "FILE.gz"),
    "muster record": ("record", "FILE.recording", "--for=2s"),
}


@pytest.fixture(scope="module")
def watched(shared_plane: Plane, wait_for: Callable[..., Any]) -> Iterator[Plane]:
    """A plane that notes what the users of the namespace ask for; in it a Job runs, one waits, and one is to go."""
    with closing(shared_plane.client()) as admin:
        admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        admin.create(QUEUE_KIND, {"metadata": {"name": NAMESPACE}, "spec": {"capability": {"nvidia.com/gpu": "2"}}})
        admin.create(PRIORITY_CLASSES, {"metadata": {"name": NAMESPACE}, "value": 1})
        admin.create(POD_GROUPS, {"metadata": {"name": "moves"}, "spec": {"minMember": 1}}, NAMESPACE)
        for name, gpus in (("runs", 0), ("waits", MORE_THAN_A_NODE_HAS)):
            admin.create(JOBS, asks_for(gpus, name), NAMESPACE)
        wait_for(lambda: admin.get(JOBS, "runs", NAMESPACE).status.running == 1)
        wait_for(  # then `ps` reads the Events about pods that cannot be created, too
            lambda: (
                {"moves", "waits"}
                <= {
                    each.metadata.name.partition("-")[0]
                    for each in admin.list(POD_GROUPS, NAMESPACE)
                    if each.why_waiting
                }
            )
        )
        yield shared_plane
        for kind in (TRAIN_JOBS, JOBS):
            for each in admin.list(kind, NAMESPACE):
                with suppress(NotFound):  # its TrainJob owns it
                    admin.delete(kind, each.metadata.name, NAMESPACE)
        wait_for(lambda: not refusal(lambda: admin.delete(QUEUE_KIND, NAMESPACE)), what="the queue to be empty")
        admin.delete(PRIORITY_CLASSES, NAMESPACE)
        admin.delete(NAMESPACES, NAMESPACE)


def asks_for(gpus: int, name: str, pods: int = 1, queue: str = "default", **annotations: str) -> JSON:
    """A Job whose pods have so many GPUs each."""
    made = job(name, NAMESPACE, task("w", pods), queue=queue)
    template = made["spec"]["tasks"][0]["template"]
    template["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    template.setdefault("metadata", {}).setdefault("annotations", {}).update(annotations)
    return made


def rules_of(rights: Iterable[str]) -> list[JSON]:
    """Rights as rules of a role."""
    found = []
    for right in rights:
        verb, _, kind = right.partition(" ")
        whole, slash, subresource = kind.partition("/")
        resource, _, group = whole.partition(".")
        found.append({"apiGroups": [group], "resources": [resource + slash + subresource], "verbs": [verb]})
    return found


def granted(client: Client, name: str, right: str, namespace: str | None) -> bool:
    """Whether the API server has seen the binding that gives a user this right."""
    [rule] = rules_of([right])
    resource, _, subresource = rule["resources"][0].partition("/")
    about = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}
    spec = {
        "user": f"system:serviceaccount:{NAMESPACE}:{name}",
        "resourceAttributes": {**about, "namespace": namespace},
    }
    return client.create(SUBJECT_ACCESS_REVIEWS, {"spec": spec}).status.allowed


def someone(plane: Plane, folder: Path, name: str, rights: Iterable[str], wait_for: Callable[..., Any]) -> Path:
    """A user with these rights and no others; his kubeconfig."""
    subject, kubeconfig = user(plane, NAMESPACE, folder, name)
    there = [right for right in rights if right != WHOLE]
    inside = [right for right in there if right.partition(" ")[2] not in ELSEWHERE]
    outside = [right for right in there if right not in inside]
    for resource, kind, some in ((ROLES, "Role", inside), (CLUSTER_ROLES, "ClusterRole", outside)):
        if some:
            space = NAMESPACE if kind == "Role" else None
            plane.client().create(resource, {"metadata": {"name": name}, "rules": rules_of(some)}, space)
            bind(plane, name, subject, kind=kind, everywhere=kind == "ClusterRole")
            wait_for(lambda some=some, space=space: granted(plane.client(), name, some[-1], space), what="the rights")
    if WHOLE in rights:
        bind(plane, VIEW_CLUSTER, subject, everywhere=True)
    return kubeconfig


def used(plane: Plane, name: str, since: int) -> set[str]:
    """What a user has asked for and got, as `verb resource`."""
    found = set()
    for event in audits.of_user(plane, name, since):
        about, decision = event.get("objectRef"), event["annotations"].get("authorization.k8s.io/decision")
        about_himself = bool(about) and about["resource"] == "selfsubjectreviews"  # everybody may ask who he is
        if about and not about_himself and decision == "allow":
            sub = f"/{about['subresource']}" if about.get("subresource") else ""
            group = f".{about['apiGroup']}" if about.get("apiGroup") else ""
            found.add(f"{event['verb']} {about['resource']}{group}{sub}")
    return found


def fill_queue(plane: Plane, name: str, wait_for: Callable[..., Any]) -> None:
    """Start a Job that takes all of the queue, for some seconds."""
    with closing(plane.client()) as admin:
        admin.create(JOBS, asks_for(1, name, pods=2, queue=NAMESPACE, **{RUN: "8"}), NAMESPACE)
        wait_for(lambda: admin.get(JOBS, name, NAMESPACE).status.running == 2)


def ordered(plane: Plane, action: str, wait_for: Callable[..., Any]) -> None:
    """Hold the Job that runs, or have it run again: the tests after this one read of its pod, in any order."""
    with closing(plane.client()) as admin:
        admin.create(COMMAND_KIND, order(action, admin.get(JOBS, "runs", NAMESPACE)), NAMESPACE)
        phase = "Aborted" if action == "AbortJob" else "Running"
        wait_for(lambda: admin.get(JOBS, "runs", NAMESPACE).status.state.phase == phase)


HOLDS, RELEASES = ("muster hold", "muster job suspend"), ("muster release", "muster job resume")
DELETES = ("muster cancel", "muster job delete")


def prepare(plane: Plane, command: str, given: int, wait_for: Callable[..., Any]) -> None:
    """Make what a command needs beside its rights."""
    if command == "muster train":  # it reports why it waits, and then runs
        fill_queue(plane, f"holds-{given}", wait_for)
    elif command in RELEASES:
        ordered(plane, "AbortJob", wait_for)
    elif command in DELETES:
        with closing(plane.client()) as admin:
            wait_for(lambda: not refusal(lambda: admin.create(JOBS, asks_for(0, "goes"), NAMESPACE)))


def typed(command: str, folder: Path) -> list[str]:
    """The command with what stands for its files."""
    (folder / "FILE.py").write_text("print(1)\n")
    (folder / "FILE.yaml").write_text(yaml.safe_dump(job("asked", NAMESPACE, task("w", 1))))
    return [str(folder / word) if word.startswith("FILE") else word for word in TYPED[command]]


def test_the_table_is_that_of_the_commands() -> None:
    """Each row is run."""
    assert [each.command for each in COMMANDS] == list(TYPED)


CASES = [
    *((row.command, row.needs) for row in COMMANDS),
    *((row.command, (*row.needs, *row.more)) for row in COMMANDS if {*row.more} - {WHOLE}),
]
"""With the rights that a command needs, and with those with which it shows more."""


@pytest.mark.parametrize(("command", "given"), CASES, ids=[f"{command}-{len(given)}" for command, given in CASES])
def test_a_command_needs_these_rights_and_no_others(
    watched: Plane, tmp_path: Path, wait_for: Callable[..., Any], command: str, given: tuple[str, ...]
) -> None:
    """Each right is used, but for those that admission asks for; what is not granted is not needed."""
    rights = given if given == (WHOLE,) else tuple(each for each in given if each != WHOLE)
    name = f"{command.replace(',', '').replace(' ', '-')}-{len(given)}"
    since = audits.length(watched)
    kubeconfig = someone(watched, tmp_path, name, rights, wait_for)
    prepare(watched, command, len(given), wait_for)
    result = CliRunner().invoke(main, [*typed(command, tmp_path), f"--kubeconfig={kubeconfig}"])
    assert result.exit_code == 0, result.output
    wanted = {*rights} - {UPDATE_JOBS, WHOLE}
    if WHOLE in rights:
        absent = (TOPOLOGIES, PROVISIONING_REQUESTS)  # other projects' kinds
        wanted = {f"list {name}" for name, each in READ.items() if each not in absent}
    wait_for(lambda: used(watched, name, since) >= wanted, what=f"{sorted(wanted)}")
    if WHOLE not in rights:
        assert used(watched, name, since) == wanted
    with closing(watched.client()) as admin:
        if command in HOLDS:
            wait_for(lambda: admin.get(JOBS, "runs", NAMESPACE).status.state.phase == "Aborted")
            ordered(watched, "ResumeJob", wait_for)
        if command in (*HOLDS, *RELEASES):
            wait_for(lambda: admin.get(JOBS, "runs", NAMESPACE).status.running == 1)


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.command)
def test_its_role_has_the_rights(row: CommandRights) -> None:
    """With those of the levels before, and for what has no namespace muster-view-queues."""
    named = {LEVELS[level]: LEVELS[: level + 1] for level in range(len(LEVELS))}
    levels = named.get(row.role.removeprefix("muster-"), ())
    rules = [rule for level in levels for rule in roles.named_tables()[f"clusterrole-muster-{level}-rules"]]
    rules += roles.tables(roles.USERS)["ClusterRole", VIEW_QUEUES]
    granted = {
        f"{verb} {resource.partition('/')[0]}{'.' if group else ''}{group}{'/' if '/' in resource else ''}"
        f"{resource.partition('/')[2]}"
        for rule in rules
        for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs)
    }
    assert {*row.needs, *row.more} - {WHOLE} <= granted
