"""`muster run`: one pod with a terminal, like `srun --pty`, which waits in a queue and is deleted at the end."""

import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Any

import click

from gangs.rows import RowSources, rows
from gangs.words import plain
from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano import scheduling
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound, Unreachable
from muster.workloads.table import group_name
from musterctl import completion
from musterctl.cluster import JSON, Where, connect_in, existing, failing_as, name_of, only_name
from musterctl.commands.train import Logs
from musterctl.commands.trainfile import amounts
from musterctl.options import Submitted, WithCommand, namespace_option, submission_options, where_options
from musterctl.output.listing import INTERRUPTED

POLL_S = 1.0
_END_S = 10.0
"""Maximum time, in seconds, to wait for the end of the pod after its terminal has closed."""
_MAIN = "main"


@click.command(cls=WithCommand, epilog="\b\nmuster run --gpus 1 --queue research --image pytorch/pytorch -- bash")
@click.option("--image", default="python:3.12", show_default=True, help="The image of the pod.")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs of the pod.")
@click.option("--cpu", help="CPUs of the pod, for example 4.")
@click.option("--memory", help="Memory of the pod, for example 16Gi.")
@click.option(
    "--queue",
    default=names.DEFAULT_QUEUE,
    show_default=True,
    shell_complete=completion.names_of(scheduling.QUEUES),
    help="The queue of the pod.",
)
@click.option("--pod", "pod_name", metavar="NAME", help="The pod's name.  [default: run and a number]")
@submission_options
@namespace_option
@where_options
def run(
    *,
    command: tuple[str, ...],
    pod_name: str | None,
    submitted: Submitted,
    namespace: str | None,
    where: Where,
    **options: Any,
) -> None:
    """Runs COMMAND in a pod that waits in a queue.

    COMMAND, by default a shell, uses the terminal of this command; without a terminal, the output of COMMAND is
    printed. The exit code is the exit code of COMMAND. While the pod waits, the reason is shown on standard error. The
    pod is deleted at the end, also after Ctrl-C.
    """
    terminal = on_terminal()
    kubectl = _kubectl(where) if terminal else ""
    client, space = connect_in(namespace, where)
    name = name_of(PODS, pod_name) if pod_name is not None else f"run-{secrets.token_hex(3)}"
    manifest = pod_of(name, command or ("sh",), submitted, terminal=terminal, **options)
    with failing_as("create", client, PODS, name, space):
        made = client.create(PODS, manifest, space, strict=True)
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.default_int_handler)
    try:
        pod, output = wait_for_start(client, made), Logs(client, space, _MAIN)
        if terminal:
            chosen = [f"--kubeconfig={where.kubeconfig}"] if where.kubeconfig else []
            attach = [kubectl, *chosen, "attach", f"--namespace={space}", "--stdin", "--tty", "--quiet", name]
            terminal = not subprocess.run(attach, check=False).returncode  # noqa: S603 # the user's own kubectl
        if not terminal:  # or the command had ended before
            output.follow(pod)
        code = exit_code(client, made, _END_S if terminal else inf)
        output.finish()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        with suppress(NotFound):
            client.delete(PODS, name, space, uid=made.metadata.uid)
    sys.exit(code)


def on_terminal() -> bool:
    """Return True if standard input and standard output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def pod_of(
    name: str,
    command: Sequence[str],
    submitted: Submitted,
    *,
    image: str,
    gpus: int | None,
    cpu: str | None,
    memory: str | None,
    queue: str,
    terminal: bool,
) -> JSON:
    """Return the manifest of the pod, whose container is not restarted."""
    resources = amounts(gpus, cpu, memory)
    container: JSON = {"name": _MAIN, "image": image, "command": list(command)}
    if resources:
        container["resources"] = {"requests": resources, "limits": resources}
    if terminal:
        container |= {"stdin": True, "stdinOnce": True, "tty": True}
    spec = {"restartPolicy": "Never", "containers": [container], **submitted.priority, **submitted.deadline}
    metadata = {"name": name, "labels": {names.QUEUE: queue}, "annotations": submitted.annotations}
    return {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": metadata, "spec": spec}


def wait_for_start(client: Client, made: Pod) -> Pod:
    """Wait until the container of the pod has started, and return the pod; print each new reason for waiting."""
    shown = ""
    while True:
        with suppress(Unreachable):  # keep waiting: the pod keeps its position in the queue
            pod = _current(client, made)
            if pod.status.phase != "Pending":
                return pod
            if (why := waiting_text(client, pod)) != shown:
                click.echo(f"{pod.metadata.name}: {why}", err=True)
                shown = why
        time.sleep(POLL_S)


def waiting_text(client: Client, pod: Pod) -> str:
    """Return the state of a waiting pod with its reason, as in `muster ps`."""
    name, namespace = group_name(pod.metadata), pod.metadata.namespace
    groups, placements = list[scheduling.PodGroup](), list[Placement]()
    with suppress(NotFound, Forbidden):
        groups.append(client.get(scheduling.POD_GROUPS, name, namespace))
        placements.append(client.get(PLACEMENTS, name, namespace))
    row = next(iter(rows(RowSources(groups=groups, pods=[pod], placements=placements))), None)
    return (
        f"{row.state}: {plain(row.message)}".removesuffix(": ")
        if row
        else "Waiting: its PodGroup has not been created yet"
    )


def exit_code(client: Client, made: Pod, most_s: float) -> int:
    """Return the exit code of the pod's command; wait at most this time for the end of the command."""
    pod, until = made, time.monotonic() + most_s
    while True:
        with suppress(Unreachable):
            pod = _current(client, made)
        if pod.status.phase in {"Succeeded", "Failed"} or time.monotonic() >= until:
            break
        time.sleep(POLL_S)
    ended = next((each.state.terminated for each in pod.status.container_statuses if each.name == _MAIN), None)
    if ended is None or pod.status.reason:
        why = f"{pod.status.reason}: {pod.status.message}" if pod.status.reason else "the connection was lost"
        raise click.ClickException(f"pod {pod.metadata.name} was stopped before its program ended: {plain(why)}")
    return ended.exit_code


def _current(client: Client, made: Pod) -> Pod:
    """Return the pod's current state. Raise ClickException if the pod was deleted."""
    try:
        pod = client.get(PODS, made.metadata.name, made.metadata.namespace)
    except NotFound:
        pod = None
    if pod is None or pod.metadata.uid != made.metadata.uid or pod.metadata.deletion_timestamp:
        name, namespace = made.metadata.name, made.metadata.namespace
        raise click.ClickException(f"pod {name} was evicted or deleted: see `muster history {name} -n {namespace}`")
    return pod


def _kubectl(where: Where) -> str:
    """Return the kubectl on the PATH, or else the kubectl of the local control plane."""
    return shutil.which("kubectl") or str(existing(where.plane or only_name()).kubectl_program())
