"""The recorder process, which exits with code 0 after a signal, and with code 1 when it loses its Lease."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Literal

import structlog
from prometheus_client import REGISTRY

from history.model import MEMORY
from history.publish import BudgetedQueues, Publisher, UsageCounters
from history.recorder import DURABLE, HistoryRecorder
from history.settings import RecorderOptions, parse
from history.store import HistoryStore, StoreError
from muster.kube.client import Client
from muster.kube.errors import ConfigurationError
from muster.kube.lease import Elector
from muster.process.health import Debug, Health, StatusServer
from muster.process.logs import configure

log = structlog.get_logger(__name__)

LOST_LEASE = 1
_JOIN_S = 10.0
News = Literal["leading", "lost", "end"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or until the Lease is lost; return the exit code."""
    options = parse(argv)
    configure("history", options.settings.log_level)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        url = options.settings.url()
        client = Client.load(options.kubeconfig, user_agent="muster-history")
        store = HistoryStore.for_writing(url)
    except (ConfigurationError, StoreError, OSError, ValueError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the error text suffices; a traceback would hide it
        return 2
    if url == MEMORY:
        log.warning(
            "the history is stored only in memory and is lost when this process ends: set `database` to keep it"
        )
    log.info("store opened", store=store.shown)
    return RecorderProcess(client, store, options).run()


class RecorderProcess:
    """The recorder with its Lease and its status port."""

    def __init__(self, client: Client, store: HistoryStore, options: RecorderOptions) -> None:
        settings = options.settings
        self._store = store
        self._news: SimpleQueue[News] = SimpleQueue()
        publisher = Publisher(client, settings.lease_namespace)
        self._queues = BudgetedQueues(client)
        publishing: dict[str, Any] = (
            {"changed": publisher.changed, "published": publisher.published} if settings.publish else {}
        )
        self._recorder = HistoryRecorder(client, store, settings, budgeted=self._queues.resources, **publishing)
        REGISTRY.register(UsageCounters(self._recorder))
        DURABLE.set(settings.durable and settings.url() != MEMORY)
        # Only the name of the pod: a container that restarts in its pod continues at once, and a pod never runs two.
        self._elector = Elector(
            client,
            settings.lease_namespace,
            settings.lease_name,
            socket.gethostname(),
            lease_duration_s=settings.lease_duration_s,
            renew_deadline_s=settings.lease_duration_s * 2 / 3,
            retry_period_s=settings.lease_duration_s / 7.5,
            on_started=lambda: self._news.put("leading"),
            on_stopped=lambda: self._news.put("lost"),
        )
        health = Health()
        health.add_check("recorder", self._recorder.not_ready)
        debug = Debug("history", options, self._sizes)
        self._status = StatusServer(settings.status_port, health, host=options.status_host, debug=debug)
        self._thread = threading.Thread(target=self._record, name="recorder", daemon=True)

    def run(self) -> int:
        """Run until a signal arrives or the Lease is lost."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self._news.put("end"))
        self._status.start()
        self._elector.start()
        while (news := self._news.get()) == "leading":
            self._thread.start()
        if news == "lost":
            # Another recorder may write from now on; incomplete work of this one is in no transaction.
            log.error("lease lost: this process ends, so that another one can be elected")
            os._exit(LOST_LEASE)
        log.info("ending")
        self._recorder.stop()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)
        self._queues.stop()
        self._elector.stop()
        self._status.stop()
        self._store.close()
        return 0

    def _record(self) -> None:
        """Run the recorder; after a crash, the next process continues where this process had stopped writing."""
        try:
            self._queues.start()
            self._recorder.run()
        except Exception:
            log.exception("the recorder failed")
            os._exit(LOST_LEASE)

    def _sizes(self) -> dict[str, int]:
        entries = self._recorder.entries
        return {"gangs": len(entries.gangs), "runs": len(entries.runs), "holdings": len(entries.holdings)}
