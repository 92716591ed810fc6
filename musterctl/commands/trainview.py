"""Progress of a TrainJob for `muster train`: its state, the reason why it waits, and its logs."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from muster.api import names
from muster.api.kubeflow.trainer import NODE, TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound, Unreachable
from muster.workloads.jobset import JOBSET_NAME, REPLICATED_JOB

POLL_S = 1.0
_LAST_LINES_S = 5.0
"""Time that the end of a log may take to arrive."""


def follow(client: Client, train_job: TrainJob, trainers: Sequence[str], *, logs: bool) -> bool:
    """Print progress until the end, and return True for success; ClickException if the TrainJob is deleted."""
    name, namespace = train_job.metadata.name, train_job.metadata.namespace
    printer = Logs(client, namespace)
    said = ""
    while True:
        with suppress(Unreachable):  # the training does not depend on this connection
            try:
                train_job = client.get(TRAIN_JOBS, name, namespace)
            except NotFound:
                raise click.ClickException(f"TrainJob {name} was deleted") from None
            ended = next((each for each in train_job.status.conditions if each.type in {"Complete", "Failed"}), None)
            now = told(train_job, lambda: waits(client, name, namespace))
            if logs and (pod := first_pod(client, train_job, trainers)):
                printer.follow(pod)
            if ended:
                printer.finish()
            if now != said:
                click.echo(f"{name}: {now}", err=True)
                said = now
            if ended:
                return ended.type == "Complete"
        time.sleep(POLL_S)


def told(train_job: TrainJob, why: Callable[[], str]) -> str:
    """Return the state of a TrainJob in a few words; `why` is called only if it waits."""
    held = {each.type: each for each in train_job.status.conditions}
    counts = train_job.status.jobs_status
    fetching = [each.name for each in counts if each.name.endswith("initializer") and not each.succeeded]
    if "Complete" in held:
        return "complete"
    for kind in ("Failed", "Blocked"):
        if kind in held:
            return f"{kind.lower()}: {held[kind].message}"
    if train_job.spec.suspend:
        return "suspended"
    if counts and all(each.ready or each.succeeded for each in counts):
        return "runs"
    if fetching:
        return f"waits for {fetching[0]}"
    return f"waits: {reason}" if (reason := why()) else "waits for its pods"


def waits(client: Client, name: str, namespace: str) -> str:
    """Return the reason why the gang of a TrainJob waits; empty without one."""
    try:
        job = client.get(JOBS, name, namespace)
        group = client.get(POD_GROUPS, f"{name}-{job.metadata.uid}", namespace)
    except NotFound:
        return ""
    return group.why_waiting


def first_pod(client: Client, train_job: TrainJob, trainers: Sequence[str]) -> Pod | None:
    """Return the pod of rank 0, once it has started."""
    name, namespace = train_job.metadata.name, train_job.metadata.namespace
    selector = f"{JOBSET_NAME}={name},{REPLICATED_JOB}={trainers[0]},{names.COMPLETION_INDEX}=0"
    found = client.list(PODS, namespace, label_selector=selector)
    begun = [each for each in found if each.status.phase in {"Running", "Succeeded", "Failed"}]
    return max(begun, key=lambda each: each.metadata.creation_timestamp or "", default=None)


class Logs:
    """Prints the log of the training container, pod after pod: a gang that starts again has new pods."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._uid = ""
        self._thread: threading.Thread | None = None

    def follow(self, pod: Pod) -> None:
        """Print the log of a pod from its beginning, unless that has started already."""
        if pod.metadata.uid == self._uid:
            return
        self._uid = pod.metadata.uid
        self._thread = threading.Thread(target=self._print, args=(pod.metadata.name,), daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the last lines."""
        if self._thread:
            self._thread.join(_LAST_LINES_S)

    def _print(self, pod: str) -> None:
        try:
            for line in self._client.log_lines(pod, self._namespace, NODE):
                click.echo(line)
        except APIError as error:
            click.echo(f"{pod}: its log cannot be read: {error.message}", err=True)
