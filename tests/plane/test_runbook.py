"""Each failure of the runbook in docs/operations.md is caused, and ended by its commands; nothing else is lost."""

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import containers
import pytest
from certificates import SECRET, content_of, kept, kubelet, secret_of
from gang_jobs import History, lone_pod, runs
from pairs import ended, started
from runbook import BARRIER_S, NAMESPACE, RESTART, STARTS_S, Walk, members, sections, submit, walk

from certs.authority import Authority, CertificatePair
from muster.api import names
from muster.api.kubernetes.core import LEASES, PODS
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound
from musterctl.plane.plane import Plane
from musterctl.plane.state import (
    COMPONENTS,
    EXTENDER,
    HISTORY,
    MUSTER_SCHEDULER,
    WEBHOOK,
)

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]
NODES = 4
__all__ = ["walk"]


@pytest.fixture(scope="module")
def whole(module_plane: Callable[..., Plane]) -> Plane:
    """The plane of failures after which it is as before."""
    return module_plane(COMPONENTS, nodes=NODES)


@pytest.fixture
def cluster(whole: Plane, wait_for: WaitFor) -> Iterator[Plane]:
    """A plane that two gangs fill."""
    yield whole
    whole.mend()
    client = whole.client()
    for resource in (JOBS, PODS):
        for each in client.list(resource, NAMESPACE):
            with suppress(NotFound):
                client.delete(resource, each.metadata.name, NAMESPACE)
    wait_for(lambda: not client.list(PODS, NAMESPACE), 120, "the end of all pods")


def test_every_section_is_walked() -> None:
    """Each has commands, and a test here."""
    headings = sections()
    assert all(headings.values())
    files = Path(__file__).parent.glob("test_runbook*.py")
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert [heading for heading in headings if f'"{heading}"' not in text] == []


def refusal(client: Client) -> str:
    """Why a pod that asks for Muster is refused; empty if it is created."""
    pod = lone_pod("asks", NAMESPACE, names.SCHEDULER)
    pod["metadata"]["labels"] = {names.QUEUE: "default"}
    try:
        client.create(PODS, pod, NAMESPACE)
    except APIError as error:
        return str(error)
    client.delete(PODS, "asks", NAMESPACE)
    return ""


def expire(client: Client) -> None:
    """The webhook's certificate becomes one that has ended."""
    signer = content_of(client).issuer
    assert signer
    authority = Authority(CertificatePair(signer.certificate.pem, signer.key_pem))
    began = datetime.now(UTC) - timedelta(days=60)
    ended = authority.issue("muster-webhook", ips=["127.0.0.1"], server=True, now=began, life=timedelta(days=30))
    data = {"tls.crt": ended.cert_pem, "tls.key": ended.key_pem}
    patch = {"data": {name: b64encode(each).decode() for name, each in data.items()}}
    client.merge_patch(CERTIFICATE_SECRETS, SECRET[0], patch, SECRET[1])


def tls_of(client: Client) -> bytes:
    """The webhook's certificate in the Secret."""
    secret = secret_of(client)
    assert secret
    return (secret.data or {})["tls.crt"]


def test_certificate_expired(cluster: Plane, walk: Callable[[Plane], Walk], wait_for: WaitFor) -> None:
    """What asks for Muster is refused, gangs run on, and the controller makes another certificate once it runs."""
    client, walked = cluster.client(), walk(cluster)
    with ExitStack() as running:
        running.enter_context(kubelet(cluster.client(), cluster.root / "pki", "webhook", 0.1))
        with kept(cluster.client()):  # a controller that looks after certificates, until it ends
            wait_for(lambda: content_of(client).leaves, 60, "a certificate")
            submit(client, "steady")
            wait_for(lambda: runs(client, NAMESPACE, "steady", 2), STARTS_S, "a gang")
        steady = members(client, "steady")
        expire(client)
        served = cluster.root / "pki" / "webhook.crt"
        wait_for(lambda: served.read_bytes() == tls_of(client), 30, "the file")
        cluster.part(WEBHOOK).restart()  # the API server checks certificates when it connects
        wait_for(lambda: "certificate has expired" in refusal(client), 60, "the webhook to present it")
        client.create(PODS, lone_pod("plain", NAMESPACE), NAMESPACE)
        heading, began_s = "The webhook's certificate has expired", time.monotonic()
        said = walked.section(
            heading,
            fails=["muster certs status"],
            instead={
                f"{RESTART} muster-controller": lambda: running.enter_context(kept(cluster.client())),
            },
        )
        assert "expired" in said["muster certs status"]
        wait_for(lambda: not refusal(client), 60, "the webhook to present another one")
        walked.took(f"{heading}, until the next one is taken", began_s)
    assert members(client, "steady") == steady


def test_webhook_down(cluster: Plane, walk: Callable[[Plane], Walk], wait_for: WaitFor) -> None:
    """What asks for Muster is refused by name, all else is created; nothing is half done afterwards."""
    client, walked = cluster.client(), walk(cluster)
    submit(client, "steady")
    wait_for(lambda: runs(client, NAMESPACE, "steady", 2), STARTS_S, "a gang")
    steady = members(client, "steady")
    cluster.part(WEBHOOK).kill()
    assert "failed calling webhook" in refusal(client)
    client.create(PODS, lone_pod("plain", NAMESPACE), NAMESPACE)
    began_s = time.monotonic()
    walked.section("The webhook is down", instead={f"{RESTART} muster-webhook": lambda: cluster.restart(WEBHOOK)})
    assert not refusal(client)
    walked.took("the webhook answers", began_s)
    submit(client, "again")
    wait_for(lambda: runs(client, NAMESPACE, "again", 2), STARTS_S, "what is submitted again")
    assert members(client, "steady") == steady


def test_extender_stuck(cluster: Plane, walk: Callable[[Plane], Walk], wait_for: WaitFor) -> None:
    """Its pair keeps the Lease, so nobody takes over; the gang that waits runs whole after the restart."""
    client, walked = cluster.client(), walk(cluster)
    submit(client, "steady")
    wait_for(lambda: runs(client, NAMESPACE, "steady", 2), STARTS_S, "a gang")
    steady = members(client, "steady")

    def renewed() -> object:
        return client.get(LEASES, names.SCHEDULER_LEASE, names.SYSTEM_NAMESPACE).spec.renew_time

    cluster.part(EXTENDER).signal(signal.SIGSTOP)
    first = renewed()
    submit(client, "stuck")
    wait_for(lambda: renewed() != first, 30, "the Lease to be renewed all the same")
    assert not members(client, "stuck")
    began_s = time.monotonic()

    def restart() -> None:
        for part in (MUSTER_SCHEDULER, EXTENDER):
            cluster.part(part).stop()
        for part in (EXTENDER, MUSTER_SCHEDULER):
            cluster.part(part).start()

    with History(client, NAMESPACE) as history:
        walked.section("The extender is stuck", instead={f"{RESTART} muster-scheduler": restart})
        wait_for(lambda: runs(client, NAMESPACE, "stuck", 2), STARTS_S, "the gang to run")
        walked.took("the waiting gang runs", began_s)
        assert history.half_placed_s("stuck-", 2) < BARRIER_S
    assert members(client, "steady") == steady


@pytest.fixture
def recorder(
    fresh_plane: Callable[..., Plane], tmp_path: Path
) -> Iterator[tuple[Plane, subprocess.Popen[bytes], Path]]:
    """A plane whose recorder writes to a small disk of its own; its process, and the disk as others see it."""
    if why := containers.possible():
        pytest.skip(why)
    disk = tmp_path / "disk"
    disk.mkdir()
    store = {"database": f"sqlite:///{disk / 'history.db'}"}
    plane = fresh_plane(COMPONENTS, nodes=NODES, settings={HISTORY: store})
    mount = f'mount --make-rprivate / && mount -t tmpfs -o size=2m none {disk} && exec "$@"'
    command = ["unshare", "--mount", "sh", "-ec", mount, "sh", *plane.commandlines.command(HISTORY)]
    process = started(command, plane.root / "recorder.log")
    yield plane, process, Path(f"/proc/{process.pid}/root{disk}")
    ended(process)


def trouble_of(plane: Plane) -> str:
    """What the recorder says of itself; empty if nothing is wrong."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{plane.state.ports['history-status']}/readyz", timeout=5):
            return ""
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError as error:
        return f"{error}"


def test_disk_full(
    recorder: tuple[Plane, subprocess.Popen[bytes], Path],
    walk: Callable[[Plane], Walk],
    wait_for: WaitFor,
) -> None:
    """Gangs run all the same, and what happened meanwhile is recorded as soon as there is space."""
    plane, process, disk = recorder
    client, walked = plane.client(), replace(walk(plane), inside=process.pid)
    wait_for(lambda: not trouble_of(plane), 60, lambda: trouble_of(plane))
    with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(1 << 12))
    submit(client, "short", run_s=1)
    wait_for(lambda: client.get(JOBS, "short", NAMESPACE).status.state.phase == "Completed", 90, "the gang to end")
    wait_for(lambda: "full" in trouble_of(plane), 60, lambda: trouble_of(plane))
    heading, began_s = "The history's disk is full", 0.0

    def larger() -> None:
        nonlocal began_s
        walked.run(f"mount -o remount,size=32m {str(disk).partition('/root')[2]}")
        began_s = time.monotonic()
        wait_for(lambda: not trouble_of(plane), 60, lambda: trouble_of(plane))
        walked.took("the recorder writes", began_s)

    walked.environment["MUSTER_HISTORY"] = f"sqlite:///{str(disk).partition('/root')[2]}/history.db"
    (grow,) = (each for each in sections()[heading] if each.startswith("kubectl"))
    walked.section(heading, instead={grow: larger})
    story = json.loads(walked.run("muster history short -o json"))["story"]
    assert [each["what"] for each in story] == ["submitted", "planned", "started", "ended"]
