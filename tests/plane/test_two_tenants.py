"""Two tenants with the role muster-edit, each in his namespace: one types all that she may, and sees nobody else."""

import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import CliRunner
from jobs import job, task
from kubelets import LINES, kubelet, serve_all_nodes
from planes import drop_queue
from tenants import bind, user

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
THEIRS = "zebra"
"""In the name of everything that is the other one's, but for his queue."""
WHOLE = {"limits": {"nvidia.com/gpu": 8}}
NODES = 8
REFUSED = re.compile(r"\b403\b")
"""The status as a word: a UID may have these digits too."""


class Typist(NamedTuple):
    """The tenant who types, with what he was told so far."""

    plane: Plane
    namespace: str
    kubeconfig: Path
    subject: dict[str, Any]
    heard: list[str]

    def muster(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        """Runs a command of Muster's in his namespace; gives both outputs."""
        head, dashes, tail = _cut(arguments)
        given = [*head, f"--kubeconfig={self.kubeconfig}", *dashes, *tail]
        result = CliRunner().invoke(main, given, input=stdin)
        self.heard.append(result.output)
        assert result.exit_code == code, f"{arguments}: {result.output}"
        assert not REFUSED.search(result.output)
        assert "forbidden" not in result.output
        return result.output

    def kubectl(self, *arguments: str) -> str:
        """Runs kubectl, which may be refused."""
        given = [str(self.plane.kubectl_program()), f"--kubeconfig={self.kubeconfig}", *arguments]
        result = subprocess.run(given, check=False, capture_output=True, text=True)
        self.heard.append(result.stdout + result.stderr)
        return result.stdout


def _cut(arguments: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:place]], [*arguments[place : place + 1]], [*arguments[place + 1 :]]


def whole_nodes(name: str, namespace: str, pods: int, queue: str, **annotations: str) -> dict[str, Any]:
    """A Job that takes so many nodes."""
    made = job(name, namespace, task("w", pods), queue=queue)
    template = made["spec"]["tasks"][0]["template"]
    template["spec"]["containers"][0]["resources"] = WHOLE
    template.setdefault("metadata", {}).setdefault("annotations", {}).update(annotations)
    return made


@pytest.fixture
def anne(plane: Plane, tmp_path: Path, wait_for: WaitFor) -> Iterator[Typist]:
    """Anne, while Otto has all nodes but for one, for ten minutes, and has more that waits before her."""
    mark, admin = uuid.uuid4().hex[:6], plane.client()
    hers, his = f"anne-{mark}", f"{THEIRS}-{mark}"
    queue = admin.create(QUEUES, {"metadata": {"name": f"team-{mark}"}, "spec": {}}).metadata.name
    for namespace in (hers, his):
        subject, kubeconfig = user(plane, namespace, tmp_path, "anne" if namespace == hers else "otto")
        bind(plane, "muster-edit", subject)
        if namespace == hers:
            one = Typist(plane, hers, kubeconfig, subject, [])
    ends = {"muster.dev/expected-runtime": "10m"}
    try:
        admin.create(JOBS, whole_nodes(f"{THEIRS}-runs", his, NODES - 1, queue, **ends), his)
        wait_for(lambda: admin.get(JOBS, f"{THEIRS}-runs", his).status.running == NODES - 1)
        admin.create(JOBS, whole_nodes(f"{THEIRS}-waits", his, NODES, queue, **ends), his)
        wait_for(lambda: admin.list(POD_GROUPS, his)[-1].metadata.name and _waits(admin, his))
        yield one
    finally:
        for namespace in (hers, his):
            for kind in (TRAIN_JOBS, JOBS):
                for each in admin.list(kind, namespace):
                    admin.delete(kind, each.metadata.name, namespace, propagation="Foreground")
        wait_for(lambda: not admin.list(JOBS, hers) + admin.list(JOBS, his))
        drop_queue(admin, queue)


def _waits(admin: Any, namespace: str) -> bool:
    return any(group.why_waiting and group.status.place for group in admin.list(POD_GROUPS, namespace))


@pytest.mark.slow
def test_she_submits_lists_explains_stops_and_sees_no_other(anne: Typist, tmp_path: Path, wait_for: WaitFor) -> None:
    """What she sees of her own is what an administrator sees of it; of the other one not a name."""
    queue = f"team-{anne.namespace.partition('-')[2]}"
    space = f"--namespace={anne.namespace}"
    limits = ("--image=none", "--limits=nvidia.com/gpu=8", f"--queue={queue}")
    assert "created" in anne.muster("job", "run", "mine", space, "--replicas=2", *limits, "--", "train")
    admin = anne.plane.client()
    wait_for(lambda: _waits(admin, anne.namespace))
    group = admin.list(POD_GROUPS, anne.namespace)[0]
    told = anne.muster("explain", "job", "mine", space)
    assert f"it waits: {group.why_waiting}" in told
    assert f"queue          {queue}, place 2 in it" in told
    assert "ClusterRole muster-view-cluster" in told
    assert "worker: 2 pods, 2 of them start together; each 8 nvidia.com/gpu" in told
    by_admin = CliRunner().invoke(main, ["explain", "job", "mine", space, f"--kubeconfig={anne.plane.kubeconfig}"])
    assert THEIRS in by_admin.output, "he sees whom she waits for"
    for arguments in (
        ("explain", "gang", group.metadata.name, space),
        ("explain", "pod", "mine-worker-0", space),
        ("explain", "job", "mine", space, "-o", "json"),
        ("job", "list", space, "-o", "wide"),
        ("ps", "-l", space),
        ("ps", "--start", space),
        ("job", "view", "mine", space),
        ("topo",),
        ("topo", "--gang", f"{anne.namespace}/mine"),
    ):
        anne.muster(*arguments)
    assert "Job mine has no log of rank 0 yet" in anne.muster("logs", "mine", space, code=1)
    file = tmp_path / "more.yaml"
    file.write_text(yaml.safe_dump(whole_nodes("more", anne.namespace, 3, queue)))
    assert "w: 3 pods, each 8 nvidia.com/gpu" in anne.muster("simulate", "-f", str(file), space)
    top = anne.muster("queue", "top")
    assert top.splitlines()[-1].split() == [queue, "0", "1", "2", "-"]
    assert "ClusterRole muster-view-queues" in top
    assert "is held: it leaves its queue" in anne.muster("job", "suspend", "mine", space)
    train = tmp_path / "fit.py"
    train.write_text("print(1)\n")
    assert "torchrun" in anne.muster("train", str(train), space, "--nodes=2", "--dry-run")
    assert "created" in anne.muster("train", str(train), space, "--nodes=2", f"--queue={queue}", "--detach")
    assert "is deleted" in anne.muster("job", "delete", "mine", space)
    assert "created" in anne.muster("job", "run", "runs", space, "--image=none", f"--queue={queue}", "--", "train")
    wait_for(lambda: admin.get(JOBS, "runs", anne.namespace).status.running == 1)
    with kubelet(tmp_path / "kubelet") as one, serve_all_nodes(admin, one):
        assert anne.muster("logs", "-f", "runs", space) == LINES.decode()
    assert "is held: it leaves its queue" in anne.muster("job", "suspend", "runs", space)
    for verb in ("get", "describe"):
        more = ("-o", "yaml") if verb == "get" else ()
        for kind in ("podgroups", "vcjob", "pods", "events", "trainjobs", "placements", "queues"):
            anne.kubectl(verb, kind, *more)
    anne.kubectl("get", "podgroups", "-A")
    assert not [text for text in anne.heard if THEIRS in text]


def test_with_the_role_for_queues_she_sees_their_use_and_no_gang(anne: Typist, wait_for: WaitFor) -> None:
    """In a ClusterRoleBinding, where muster-view would show her all Jobs; what Queues say is there a moment later."""
    queue = f"team-{anne.namespace.partition('-')[2]}"
    bind(anne.plane, "muster-view-queues", anne.subject, everywhere=True)

    def told() -> list[str]:
        [line] = [line for line in anne.muster("queue", "top").splitlines() if line.strip().startswith(queue)]
        return line.split()

    wait_for(lambda: [*told()[1:3], told()[-1]] == ["nvidia.com/gpu", "56", "1"], what=lambda: str(told()))
    anne.muster("queue", "list", "-o", "wide")
    assert "1 gang waits in it" in anne.muster("queue", "explain", queue)
    anne.kubectl("get", "queues", "-o", "yaml")
    assert not [text for text in anne.heard if THEIRS in text]


def test_an_observer_sees_all(anne: Typist) -> None:
    """What the hint says helps."""
    bind(anne.plane, "muster-view-cluster", anne.subject, everywhere=True)
    assert "ClusterRole" not in anne.muster("queue", "top")
    assert "no topology exists" in anne.muster("topo"), "none is configured"
    name = f"{THEIRS}-{anne.namespace.partition('-')[2]}"
    assert "would help" in anne.muster("explain", "job", f"{THEIRS}-waits", f"--namespace={name}")
