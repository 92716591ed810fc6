"""Recorder of core/v1 Events, which `kubectl describe` and `kubectl get events` show.

Recording never blocks and never raises an error: events wait in a bounded queue for a thread that writes them. The
thread alternates between namespaces, so that no tenant delays or displaces the events of others. The repetition of an
event increases the count in the existing Event object.
"""

import platform
import random
import secrets
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec
import structlog
from cachetools import LRUCache
from prometheus_client import Counter

from muster.api.kubernetes.core import EVENTS
from muster.api.kubernetes.meta import Object, format_time
from muster.kube import errors
from muster.kube.client import Client
from muster.kube.workqueue import GroupQueue

log = structlog.get_logger(__name__)

EVENTS_DROPPED = Counter("muster_kube_events_dropped_total", "Events that could not be recorded, by cause.", ["why"])
_MAX_PENDING = 4000
_MAX_OF_NAMESPACE = 250
_MAX_REMEMBERED = 4096
_MAX_MESSAGE_CHARS = 1024
_MAX_NAME_CHARS = 230
_STOP_FLUSH_S = 2.0
_FIRST_DELAY_S = 0.2
_MAX_DELAY_S = 10.0
_MAX_ATTEMPTS = 8


class _Key(NamedTuple):
    """The fields that must be equal for an event to count as a repetition."""

    namespace: str
    kind: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


class _Pending(msgspec.Struct, gc=False):
    """An event to write, which occurred `times` times, the last time at `last_s` (seconds since the epoch)."""

    api_version: str
    resource_version: str
    first_s: float
    last_s: float
    times: int = 1


class EventWriter:
    """Writes Events with `component` as their source. The function `wall_s` returns seconds since the epoch."""

    def __init__(self, client: Client, component: str, *, wall_s: Callable[[], float] = time.time) -> None:
        self._client = client
        self._component = component
        self._wall_s = wall_s
        self._host = platform.node()
        self._changed = threading.Condition()
        self._pending: dict[_Key, _Pending] = {}
        self._order: GroupQueue[_Key] = GroupQueue(attrgetter("namespace"))
        self._of_namespace: Tally[str] = Tally()
        self._writing = False
        self._stopping = False
        self._written: LRUCache[_Key, tuple[str, int]] = LRUCache(_MAX_REMEMBERED)
        """Names and counts of existing Event objects; the count of an object is patched if its event repeats."""
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def event(self, obj: Object, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:  # noqa: A002 - Kubernetes calls it so
        """Queue an event about the object `obj`, whose kind must be set."""
        meta, now = obj.metadata, self._wall_s()
        message = message[:_MAX_MESSAGE_CHARS]
        key = _Key(meta.namespace, obj.kind, meta.name, meta.uid, type, reason, message)
        with self._changed:
            pending = self._pending.get(key)
            if pending:
                pending.times += 1
                pending.last_s = now
            elif (
                self._of_namespace[key.namespace] >= _MAX_OF_NAMESPACE
                or len(self._pending) >= _MAX_PENDING
                or self._stopping
            ):
                EVENTS_DROPPED.labels("queue full").inc()
            else:
                self._pending[key] = _Pending(obj.api_version, meta.resource_version, now, now)
                self._order.add(key)
                self._of_namespace[key.namespace] += 1
                self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all queued events are written; return False if the timeout ends first."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending and not self._writing, timeout_s)

    def start(self) -> None:
        """Start the thread that writes events, including those that were queued before."""
        self._thread.start()

    def stop(self) -> None:
        """Try for a short time to write the remaining events, then end the thread."""
        if self._thread.ident is not None:
            self.flush(_STOP_FLUSH_S)
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(_STOP_FLUSH_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._stopping)
                if self._stopping:
                    return
                key, pending = self._next()
                self._writing = True
            try:
                self._deliver(key, pending)
            except Exception:
                # An error in one event must not prevent the others from being written.
                EVENTS_DROPPED.labels("not written").inc()
                log.exception(
                    "event dropped because of an unexpected error", object=f"{key.kind} {key.namespace}/{key.name}"
                )
            finally:
                with self._changed:
                    self._writing = False
                    self._changed.notify_all()

    def _next(self) -> tuple[_Key, _Pending]:
        """Remove and return the oldest event of the namespace that has waited longest."""
        key = self._order.next_key()
        self._order.done(key)
        self._of_namespace -= Tally([key.namespace])
        return key, self._pending.pop(key)

    def _deliver(self, key: _Key, pending: _Pending) -> None:
        """Write an event; retry for a short time if the API server is unavailable."""
        backoff = errors.Backoff(_FIRST_DELAY_S, _MAX_DELAY_S, random.random)
        name = f"{key.name[:_MAX_NAME_CHARS]}.{secrets.token_hex(8)}"
        for _ in range(_MAX_ATTEMPTS):
            try:
                self._write(key, pending, name)
            except (errors.Unreachable, errors.ServerError, errors.TooManyRequests) as error:
                why = str(error)
                with self._changed:
                    if self._changed.wait_for(lambda: self._stopping, backoff.next()):
                        break
            except errors.NamespaceEnds:
                return
            except errors.APIError as error:
                why = str(error)
                break
            else:
                return
        EVENTS_DROPPED.labels("not written").inc()
        log.warning("event not recorded", about=f"{key.kind} {key.namespace}/{key.name}", reason=key.reason, why=why)

    def _write(self, key: _Key, pending: _Pending, name: str) -> None:
        known, count = self._written.get(key, ("", 0))
        if known:
            count += pending.times
            patch = {"count": count, "lastTimestamp": format_time(pending.last_s)}
            with suppress(errors.NotFound):  # Event objects expire
                self._client.merge_patch(EVENTS, known, patch, key.namespace or "default")
                self._written[key] = known, count
                return
        with suppress(errors.AlreadyExists):  # an earlier attempt succeeded, but its response was lost
            self._client.create(EVENTS, self._object(key, pending, name))
        self._written[key] = name, pending.times

    def _object(self, key: _Key, pending: _Pending, name: str) -> dict[str, Any]:
        involved = {
            "apiVersion": pending.api_version,
            "kind": key.kind,
            "name": key.name,
            "namespace": key.namespace,
            "uid": key.uid,
            "resourceVersion": pending.resource_version,
        }
        return {
            "metadata": {"name": name, "namespace": key.namespace or "default"},
            "involvedObject": {field: value for field, value in involved.items() if value},
            "type": key.type,
            "reason": key.reason,
            "message": key.message,
            "firstTimestamp": format_time(pending.first_s),
            "lastTimestamp": format_time(pending.last_s),
            "count": pending.times,
            "source": {"component": self._component, "host": self._host},
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }
