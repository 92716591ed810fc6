"""Limits per user and budgets of queues on a real plane, under concurrent submission and a killed extender."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from gang_jobs import RECOVERY_S, attempt, job
from planes import Muster
from tenants import Tenant, tenant
from watching import Watching

from muster.api.kubernetes.core import CONFIG_MAPS, EVENTS, NODES, PODS, Pod
from muster.api.muster.usage import KEY
from muster.api.names import BUDGET, BUDGET_MODE, GPU_PRODUCT, MAX_BY_MODEL, MAX_PER_USER, USAGE, WINDOWS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup
from muster.kube.client import Client
from muster.kube.errors import Invalid
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
MOST = 6
THREADS = 20
JOBS_EACH = 2


class Held(Watching):
    """The GPUs that pods of each namespace hold, after every event of a watch: the most there ever were."""

    def __init__(self, client: Client) -> None:
        self._pods: dict[str, str] = {}
        self._now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._lock = threading.Lock()
        reflector: Reflector[Pod] = Reflector(client, PODS)
        reflector.add_handler(self._saw)
        super().__init__(reflector)

    def _saw(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None
        holds = new is not None and bool(new.spec.node_name) and not new.finished
        with self._lock:
            where = pod.metadata.namespace
            if holds and pod.metadata.uid not in self._pods:
                self._pods[pod.metadata.uid] = where
                self._now[where] += 1
                self.most[where] = max(self.most[where], self._now[where])
            elif not holds and self._pods.pop(pod.metadata.uid, None):
                self._now[where] -= 1


def submit(user: Tenant, queue: str, number: int) -> None:
    """Two Jobs of one to three GPUs, one of them elastic."""
    for each in range(JOBS_EACH):
        size = (number + each) % 3 + 1
        made = job(f"j{number}-{each}", user.namespace, replicas=size + each, min_available=size, gpus=1, run_s=1)
        made["spec"]["queue"] = queue
        attempt(lambda made=made: user.client.create(JOBS, made, user.namespace))


@pytest.mark.slow
def test_nobody_ever_holds_more(plane: Plane, tmp_path: Path, wait_for: WaitFor) -> None:
    """20 threads submit at once for two users; both get as much as they may, never more, and all Jobs end."""
    admin = plane.client()
    admin.create(QUEUES, {"metadata": {"name": "shared", "annotations": {MAX_PER_USER: f"nvidia.com/gpu={MOST}"}}})
    users = [tenant(plane, name, tmp_path) for name in ("user-a", "user-b")]
    allowed = {user.namespace: MOST for user in users}
    with Held(admin) as held:
        for user in users:
            user.client.create(JOBS, job("first", user.namespace, replicas=MOST, gpus=1), user.namespace)
        wait_for(lambda: held.most == allowed, what="both to hold as much as they may")
        for user in users:
            user.client.delete(JOBS, "first", user.namespace)
        wait_for(lambda: not any(admin.list(PODS, user.namespace) for user in users), what="their pods to be gone")
        with ThreadPoolExecutor(THREADS) as pool:
            done = [pool.submit(submit, users[number % 2], "shared", number) for number in range(THREADS)]
            time.sleep(1.5)
            plane.part("extender").kill()
            plane.part("extender").start()
            for each in done:
                each.result()

        def left() -> list[str]:
            jobs = chain.from_iterable(admin.list(JOBS, user.namespace) for user in users)
            return [each.metadata.name for each in jobs if each.status.state.phase != "Completed"]

        wait_for(lambda: not left(), 3 * RECOVERY_S, "all Jobs to complete")
        assert held.most == allowed
    for user in users:
        groups = admin.list(POD_GROUPS, user.namespace)
        assert {each.metadata.annotations["muster.dev/created-by"] for each in groups} <= {user.user}


def why(group: PodGroup) -> str:
    """The reason for which a gang waits."""
    waits = (each for each in group.status.conditions if each.type == "Unschedulable" and each.status == "True")
    return next((f"{each.reason}: {each.message}" for each in waits), "")


def test_a_gang_waits_for_the_limit_of_its_user(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """And says so, with the user's name."""
    client.create(QUEUES, {"metadata": {"name": "small", "annotations": {MAX_PER_USER: "nvidia.com/gpu=8"}}})
    for name in ("first", "second"):
        made = job(name, namespace, replicas=1, gpus=8)
        made["spec"]["queue"] = "small"
        client.create(JOBS, made, namespace)
        wait_for(lambda name=name: [g for g in client.list(POD_GROUPS, namespace) if g.metadata.name.startswith(name)])
    told = wait_for(lambda: [text for group in client.list(POD_GROUPS, namespace) if (text := why(group))])
    assert len(told) == 1
    assert told[0].startswith("UserOverLimit: user ")
    assert "holds 8 of 8 nvidia.com/gpu that queue small allows per user; 8 more are requested" in told[0]


def test_a_budget_is_told_and_enforced(
    client: Client, namespace: str, muster: Muster, tmp_path: Path, wait_for: WaitFor
) -> None:
    """By what the recorder publishes: an event at 80 %, and no new gang once all of it is used."""
    said = {BUDGET: "nvidia.com/gpu=10h/month", BUDGET_MODE: "enforce"}
    client.create(QUEUES, {"metadata": {"name": "paid", "annotations": said}})

    def publish(hours: float) -> None:
        now = time.time()
        month = time.strftime("%Y-%m", time.gmtime(now))
        seconds = f'{{"nvidia.com/gpu": {hours * 3600}}}'
        text = f'{{"until": {now}, "queues": {{"paid": {{"month": "{month}", "seconds": {seconds}}}}}}}'
        client.apply(CONFIG_MAPS, {"metadata": {"name": USAGE, "namespace": "muster-system"}, "data": {KEY: text}})

    def events() -> set[str]:
        return {each.reason for each in client.list(EVENTS) if each.involved_object.get("name") == "paid"}

    publish(9)
    wait_for(lambda: "BudgetNearlyUsed" in events(), 30, "the event that the budget is nearly used")
    made = job("runs", namespace, replicas=1, gpus=1)
    made["spec"]["queue"] = "paid"
    client.create(JOBS, made, namespace)
    wait_for(lambda: [pod for pod in client.list(PODS, namespace) if pod.spec.node_name], what="the first to start")
    publish(11)
    assert "of the budget of nvidia.com/gpu per month used)" in muster("queue", "top")
    assert "nvidia.com/gpu=10h/month (enforce)" in muster("queue", "view", "paid")
    wait_for(lambda: "BudgetUsed" in events(), 30, "the event that the budget is used")
    late = job("late", namespace, replicas=1, gpus=1)
    late["spec"]["queue"] = "paid"
    client.create(JOBS, late, namespace)
    told = wait_for(lambda: [text for group in client.list(POD_GROUPS, namespace) if (text := why(group))])
    file = tmp_path / "next.yaml"
    file.write_text(yaml.safe_dump({**late, "metadata": {"name": "next"}}))
    assert "queue paid has used its budget" in muster("simulate", "-n", namespace, "-f", str(file))
    assert told[0].startswith("QueueOverBudget: queue paid has used its budget of 10 h of nvidia.com/gpu this month")
    client.delete(CONFIG_MAPS, USAGE, "muster-system")
    wait_for(lambda: all(not why(group) for group in client.list(POD_GROUPS, namespace)), 30, "the late gang to start")


def test_no_more_gpus_of_a_model_are_used(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """A gang grows on nodes of the model up to the limit of its queue, and says why it gets no more there."""
    product = "NVIDIA-H100-80GB-HBM3"
    client.merge_patch(NODES, client.list(NODES)[0].metadata.name, {"metadata": {"labels": {GPU_PRODUCT: product}}})
    client.create(QUEUES, {"metadata": {"name": "models", "annotations": {MAX_BY_MODEL: "h100=4"}}})
    made = job("grows", namespace, replicas=6, min_available=1, gpus=1)
    made["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {GPU_PRODUCT: product}
    made["spec"]["queue"] = "models"
    with Held(client) as held:
        client.create(JOBS, made, namespace)
        wait_for(lambda: held.most[namespace] == 4, 30, "four members to run")
        told = wait_for(lambda: [text for group in client.list(POD_GROUPS, namespace) if (text := why(group))])
        assert "has GPUs of model h100, of which queue models may use 4 (max-by-model)" in told[0]
        assert held.most[namespace] == 4


def test_a_window_keeps_gangs_waiting(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Until it is taken away; all mistakes in such annotations are told at once."""
    wrong = {WINDOWS: "Mon 08:00-08:00 UTC pods=1", MAX_PER_USER: "gpu", BUDGET: "cpu=1h/year"}
    with pytest.raises(Invalid) as refused:
        client.create(QUEUES, {"metadata": {"name": "wrong", "annotations": wrong}})
    assert all(f"metadata.annotations[{key}]" in str(refused.value) for key in wrong)
    always = {WINDOWS: "Mon-Sun 00:00-24:00 Europe/Berlin nvidia.com/gpu=0"}
    client.create(QUEUES, {"metadata": {"name": "closed", "annotations": always}})
    made = job("late", namespace, replicas=1, gpus=1)
    made["spec"]["queue"] = "closed"
    client.create(JOBS, made, namespace)
    told = wait_for(lambda: [text for group in client.list(POD_GROUPS, namespace) if (text := why(group))])
    assert told[0].startswith("QueueOverWindow: queue closed may use 0 nvidia.com/gpu until ")
    client.merge_patch(QUEUES, "closed", {"metadata": {"annotations": {WINDOWS: None}}})
    wait_for(lambda: [pod for pod in client.list(PODS, namespace) if pod.spec.node_name], what="it to start")
