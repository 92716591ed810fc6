"""kube-scheduler calls the extender over TLS, with a certificate, and one of both is renewed meanwhile."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gangs import History, job, metric

from certs.authority import Authority
from certs.content import Content, read
from controller.certificates.keeper import Keeper
from controller.certificates.options import scheduler_certificates_of
from controller.settings import ControllerSettings
from muster.api.kubernetes.certificates import CERTIFICATE_SECRETS
from muster.api.names import EXTENDER_HOST, ROTATE, SYSTEM_NAMESPACE
from muster.api.volcano.batch import JOBS
from musterctl.plane.components import API_SERVER, ETCD
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.timeout(600)]
PODS_OF_GANG = 400
HELD = 200
WHOLE_S = 120.0
ENTRIES = 2
"""Of the extender in kube-scheduler's configuration; each has one connection, whatever it asks at once."""
_ESTABLISHED = "01"
_EXPIRES = "muster_server_certificate_expiry_timestamp_seconds"
WaitFor = Callable[..., Any]


def connections(port: int) -> int:
    """How many clients are connected to this port of the machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == _ESTABLISHED for row in rows)


def renew(plane: Plane) -> None:
    """New certificates of the same authority for both, that of the extender with another end."""
    folder = plane.root / "pki" / "extender"
    authority = Authority.load(folder)
    authority.issue("kube-scheduler", client=True).save(folder, "client")
    authority.issue(EXTENDER_HOST, dns_names=(EXTENDER_HOST,), server=True).save(folder)


@contextmanager
def stopped(plane: Plane, part: str) -> Iterator[None]:
    """The part stands still meanwhile."""
    pid = plane.part(part).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_gang_is_bound_while_certificates_are_renewed(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """All held calls share one connection, as it is HTTP/2; none of them breaks, and the gang starts as one."""
    plane = fresh_plane(nodes=16, extender_tls=True)
    client, port = plane.client(), plane.state.ports["extender"]
    with History(client, "default") as history:
        client.create(JOBS, job("gang", "default", replicas=PODS_OF_GANG, gpus=0, cpu="10m"), "default")

        def held() -> int:
            return int(metric(plane, "extender", "muster_barrier_held"))

        wait_for(lambda: held() >= HELD, WHOLE_S, "calls to be held")
        with stopped(plane, "muster-scheduler"):
            before = held()
            assert HELD <= before < PODS_OF_GANG
            assert connections(port) == ENTRIES
            shown = metric(plane, "extender", _EXPIRES)
            renew(plane)
            wait_for(lambda: metric(plane, "extender", _EXPIRES) != shown, WHOLE_S, "the new certificate")
            assert held() >= before
        wait_for(lambda: client.get(JOBS, "gang", "default").status.running == PODS_OF_GANG, WHOLE_S, "the gang to run")
        assert not [life for life in history.pods.values() if len(life.nodes) > 1]
        assert metric(plane, "extender", 'muster_barrier_total{outcome="timeout"}') == 0
        wait_for(lambda: connections(port) == ENTRIES, WHOLE_S, "the old connections to end")
    print(f"{before} calls were held over one of {ENTRIES} connections")  # noqa: T201 - a figure of a long run


SECRET = "muster-extender-tls"  # noqa: S105 - its name


@contextmanager
def kept(plane: Plane, **terms: str) -> Iterator[None]:
    """A controller's part that looks after the certificates between kube-scheduler and the extender."""
    options = scheduler_certificates_of(ControllerSettings(scheduler_cert_secret=SECRET, **terms))
    assert options
    keeper = Keeper(plane.client(), options, SYSTEM_NAMESPACE)
    keeper.start()
    keeper.lead(lambda: True)
    try:
        yield
    finally:
        keeper.stop()


def test_the_controller_makes_and_renews_both(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """A new authority waits until kube-schedulers have been started again; what there is is renewed meanwhile."""
    plane = fresh_plane({ETCD, API_SERVER})
    client = plane.client()

    def content() -> Content:
        for secret in client.list(CERTIFICATE_SECRETS, SYSTEM_NAMESPACE):
            meta = secret.metadata
            return read(secret.data or {}, meta.labels, meta.annotations, ("tls", "client"))
        return Content()

    def ask(what: str) -> None:
        client.merge_patch(CERTIFICATE_SECRETS, SECRET, {"metadata": {"annotations": {ROTATE: what}}}, SYSTEM_NAMESPACE)

    with kept(plane):
        wait_for(lambda: len(content().leaves) == 2, 30, "the certificates")
        first = content()
        assert first.issuer
        assert len(first.trusted) == 1
        assert first.leaves["tls"].certificate.names == {EXTENDER_HOST}
        ask("authority")
        wait_for(lambda: content().coming, 30, "another authority")
        ask("serving")
        wait_for(lambda: content().leaves != first.leaves and not content().request, 30, "new certificates")
        second = content()
        assert second.coming
        assert second.issuer == first.issuer
        assert len(second.trusted) == 2
        assert all(pair.certificate.signed_by(first.issuer.certificate) for pair in second.leaves.values())
    with kept(plane, scheduler_cert_trust_wait="1s"):
        wait_for(lambda: content().coming is None, 30, "it to sign")
        third = content()
        assert third.issuer == second.coming
        assert all(pair.certificate.signed_by(second.coming.certificate) for pair in third.leaves.values())
        assert first.issuer.certificate in third.trusted
