"""Leader election with a Lease, so that at most one process acts at a time, and an observer of another process's Lease.

A holder renews the lease every `retry_period_s`. The holder stops acting `renew_deadline_s` after it *sent* its last
successful renewal. Another candidate takes the lease after it has *seen* the lease unchanged for `lease_duration_s`,
which is a longer time. Therefore the holder stops first, even if a request or its response is lost. The wall clocks of
machines are not compared. Each call of `leading` reads the monotonic clock, so a process that was suspended past its
deadline no longer acts.
"""

import random as _random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from typing import Any, Literal

import structlog
from prometheus_client import Gauge

from muster.api.kubernetes import core, meta
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, Conflict, NotFound
from muster.kube.reflector import Reflector

log = structlog.get_logger(__name__)

LEADING = Gauge("muster_kube_leading", "1 while this process holds the lease of this name.", ["lease"])
_JITTER = 0.2
_FOLLOWER_DELAY_S = 2.0
"""Maximum delay between a follower's attempts to read the lease. The delay equals the leader's renewal interval, so
that the follower soon notices the leader after an outage."""


class Elector:
    """One candidate in the election of a leader, which runs in a separate thread.

    The thread calls `on_started` when the lease is won, and `on_stopped` when the lease is lost or released. Both
    functions must return quickly (start or signal threads, but do no work), because the lease is not renewed meanwhile.
    `on_stopped` is called before the lease is released, so that the next holder starts later. If `on_started` raises,
    the lease is released again.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease_duration_s: float = 15,
        renew_deadline_s: float = 10,
        retry_period_s: float = 2,
        monotonic_s: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = _random.random,
        on_started: Callable[[], None] = lambda: None,
        on_stopped: Callable[[], None] = lambda: None,
    ) -> None:
        if not lease_duration_s > renew_deadline_s > retry_period_s * (1 + _JITTER) > 0:
            raise ValueError(
                f"lease duration ({lease_duration_s} s) > renew deadline ({renew_deadline_s} s) > retry period"
                f" ({retry_period_s} s, and {_JITTER:.0%} jitter) must hold"
            )
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._lease_duration_s = lease_duration_s
        self._renew_deadline_s = renew_deadline_s
        self._retry_period_s = retry_period_s
        self._monotonic_s = monotonic_s
        self._random = random
        self._on_started = on_started
        self._on_stopped = on_stopped
        self._stopping = threading.Event()
        self._renewed_at: float | None = None  # when the last successful renewal was *sent*; None: not holding
        self._seen: core.LeaseSpec | None = None  # the last record of another holder, and when it was first seen
        self._seen_at = 0.0
        self._written: core.Lease | None = None  # the lease as this process wrote it last; None: it has to be read
        self._thread = threading.Thread(target=self._run, name=f"elector-{name}", daemon=True)

    @property
    def leading(self) -> bool:
        """True while this process leads, and may therefore act."""
        renewed_at = self._renewed_at
        return renewed_at is not None and self._monotonic_s() - renewed_at < self._renew_deadline_s

    def start(self) -> None:
        """Start the candidate's thread."""
        LEADING.labels(self._name).set_function(lambda: self.leading)
        self._thread.start()

    def stop(self) -> None:
        """Stop the candidate; a held lease is released, so that other candidates need not wait for its expiry."""
        self._stopping.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(self._renew_deadline_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self._turn())
        if self._renewed_at is not None:
            self._step_down("stopped")
            self._release()

    def _turn(self) -> float:
        """Try once; return the pause until the next attempt. Periods begin with an attempt, however long it takes."""
        began_at = self._monotonic_s()
        self._renew_once()
        period_s = self._retry_period_s * (1 + _JITTER * self._random())
        return max(0.0, period_s - (self._monotonic_s() - began_at))

    def _renew_once(self) -> None:
        """Try to take or renew the lease, and start or stop leading according to the result.

        If a response is lost ("unknown"), the process leads until its deadline. Once `leading` has been False, even
        briefly, work may have been rejected or abandoned. `leading` must therefore not become True again without a call
        of `on_started`. Therefore, a process that has renewed the lease too late stops leading.
        """
        sent_at = self._monotonic_s()
        holder = self._try()
        if self._renewed_at is None:
            if holder == "us" and self._monotonic_s() - sent_at < self._renew_deadline_s:
                self._step_up(sent_at)
        elif not self.leading:
            self._step_down("could not renew in time")
        elif holder == "us":
            self._renewed_at = sent_at
        elif holder == "another":
            self._step_down("another candidate holds the lease")

    def _try(self) -> Literal["us", "another", "unknown"]:
        """Take or renew the lease if allowed; return who holds the lease afterwards.

        A holder first writes without reading, so that a renewal takes one request while the API server is slow.
        """
        written, self._written = self._written, None
        try:
            if written is not None:
                with suppress(Conflict, NotFound):  # the lease has changed since, so it has to be read
                    return self._write(written, self._renew_deadline_s / 2)  # time for a new connection, too
            try:
                lease = self._client.get(core.LEASES, self._name, self._namespace, timeout_s=self._timeout_s)
            except NotFound:
                new = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": self._record(None)}
                self._written = self._client.create(core.LEASES, new, timeout_s=self._timeout_s)
                return "us"
            if not self._free(lease.spec):
                return "another"
            return self._write(lease, self._timeout_s)
        except APIError as error:
            if (
                isinstance(error, AlreadyExists | Conflict) and not self.leading
            ):  # two candidates tried at the same time
                log.info("another candidate acquired the lease first", lease=self._name)
            else:
                log.warning(
                    "lease neither acquired nor renewed", lease=self._name, leading=self.leading, why=str(error)
                )
            return "unknown"

    @property
    def _timeout_s(self) -> float:
        """Timeout of one request, so that two of them (a read and a write) fit into the renew deadline."""
        return self._renew_deadline_s / 2.5

    def _free(self, spec: core.LeaseSpec) -> bool:
        """Return True if this process may take the lease: it already holds the lease, or the lease is free or expired.

        Any change of the lease's record counts as a renewal, regardless of the times in the record. A new candidate
        waits for the whole lease duration, because it does not know when the lease was last renewed.
        """
        now = self._monotonic_s()
        if spec != self._seen:
            self._seen, self._seen_at = spec, now
        duration_s = spec.lease_duration_seconds or self._lease_duration_s
        return spec.holder_identity in {None, "", self._identity} or now - self._seen_at >= duration_s

    def _record(self, old: core.LeaseSpec | None) -> dict[str, Any]:
        now = meta.format_time(time.time(), micros=True)
        record: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": ceil(self._lease_duration_s),
            "renewTime": now,
        }
        if old is None or old.holder_identity != self._identity:
            record["acquireTime"] = now
            record["leaseTransitions"] = 0 if old is None else (old.lease_transitions or 0) + 1
        return record

    def _write(self, lease: core.Lease, timeout_s: float) -> Literal["us"]:
        """Renew the lease, or take it; raises Conflict if it is no longer this lease."""
        self._written = self._patched(lease, self._record(lease.spec), timeout_s)
        return "us"

    def _patched(self, lease: core.Lease, spec: dict[str, Any], timeout_s: float) -> core.Lease:
        patch = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        return self._client.merge_patch(core.LEASES, self._name, patch, self._namespace, timeout_s=timeout_s)

    def _step_up(self, renewed_at: float) -> None:
        log.info("leading", lease=self._name, identity=self._identity)
        self._renewed_at = renewed_at
        try:
            self._on_started()
        except Exception:
            log.exception("cannot start as the leader", lease=self._name)
            self._step_down("could not start")
            self._release()

    def _step_down(self, why: str) -> None:
        log.info("no longer the leader", lease=self._name, identity=self._identity, why=why)
        self._renewed_at = None
        try:
            self._on_stopped()
        except Exception:  # `leading` is False already, and the candidacy must continue
            log.exception("stopping as the leader failed", lease=self._name)

    def _release(self) -> None:
        """Release the lease if this process still holds it.

        As in client-go, a released lease has no holder, and a duration of one second.
        """
        self._written = None
        try:
            lease = self._client.get(core.LEASES, self._name, self._namespace, timeout_s=self._timeout_s)
            if lease.spec.holder_identity == self._identity:
                now = meta.format_time(time.time(), micros=True)
                released = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
                self._patched(lease, released, self._timeout_s)
        except APIError as error:
            log.warning("lease not released; other candidates wait until it expires", lease=self._name, why=str(error))


class LeaseFollower:
    """Observer of another process's lease; `active` while a holder with this `identity_prefix` renews the lease.

    The extender acts only while the kube-scheduler in its own pod leads. The identity of this kube-scheduler begins
    with the pod's name. The observer measures all times by its own process's clock. A lease that exists at the start
    counts only from its next renewal, because the age of the last renewal is unknown.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity_prefix: str,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = identity_prefix
        self._monotonic_s = monotonic_s
        self._active_until = float("-inf")
        self._reflector = Reflector(
            client,
            core.LEASES,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            longest_delay_s=_FOLLOWER_DELAY_S,
        )
        self._reflector.add_handler(self.observe)

    @property
    def active(self) -> bool:
        """True while the followed leader leads."""
        return self._monotonic_s() < self._active_until

    def start(self) -> None:
        """Start to follow the lease; the follower is inactive until the leader has renewed the lease once."""
        self._reflector.start()

    def stop(self) -> None:
        """Stop following the lease; the follower is inactive from now on."""
        self._reflector.stop()
        self._active_until = float("-inf")

    def observe(self, old: core.Lease | None, new: core.Lease | None) -> None:
        """Process a change of the followed lease."""
        if new is None or not (new.spec.holder_identity or "").startswith(self._prefix):
            self._active_until = float("-inf")
        elif old is None and not self._reflector.synced:
            return
        elif old is None or old.spec.renew_time != new.spec.renew_time:
            self._active_until = self._monotonic_s() + (new.spec.lease_duration_seconds or 0)
