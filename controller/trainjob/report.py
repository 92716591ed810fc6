"""The status server, to which trainers report their progress over HTTPS; it writes `status.trainerStatus`.

Every replica of the controller accepts reports, because a report requires only a review of its token and a write.
Kubeflow's SDK calls the server in `update_trainjob_status`. `TrainerReports` sets the variables that the SDK reads,
with the URL, the token and the CA certificates, in each training container. The token of a container is valid only for
the status of the container's TrainJob.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec import to_builtins
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from controller.trainjob.obstacle import Obstacle
from controller.trainjob.rules import reports
from muster.api import names
from muster.api.kubeflow.trainer import GROUP, TRAIN_JOBS, VERSION
from muster.api.kubernetes.reviews import TOKEN_REVIEWS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import APIError, Conflict, NotFound
from muster.process.serve import Threaded, listen
from muster.process.tls import ServerTLS
from muster.runtime.info import Info
from muster.runtime.plan import Component, Mount, Plan, Volume, owned
from muster.runtime.plugins.shared import yielding
from muster.runtime.train_job import mounted_paths

JSON = dict[str, Any]
log = structlog.get_logger(__name__)
AT_ONCE: Final = 32
"""Maximum number of completely received reports that are handled at the same time; further reports wait."""
OF_A_PEER: Final = 8
"""Maximum number of reports from one address that are handled at the same time, so that many reports from one address
do not delay others."""
_CALL_S: Final = 5.0
VOLUME = "kubeflow-trainer-token"
FOLDER = "/var/run/secrets/kubeflow/trainer"
EXPIRES_S = 3600
_STEPS = frozenset({"trainer", "launcher"})


class Reports:
    """Handler of reports; each report consists of the path, the Authorization header and the body of a request."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def answer(self, path: str, authorization: str, body: bytes) -> tuple[HTTPStatus, JSON]:
        """Handle a report; return the HTTP status code and the body of the response."""
        try:
            return HTTPStatus.OK, self.accept_report(path, authorization, body)
        except reports.RefusedError as refused:
            return refused.status, reports.answer(refused)
        except APIError as error:
            known = error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY}
            if not known:
                log.warning("report not written", path=path, why=str(error))
            status = HTTPStatus(error.status) if known else HTTPStatus.INTERNAL_SERVER_ERROR
            message = error.message if known else "the report cannot be written for now"
            return status, reports.answer(reports.RefusedError(status, message))

    def accept_report(self, path: str, authorization: str, body: bytes) -> JSON:
        """Write the reported status and return it; raise RefusedError if the report is refused."""
        target = reports.target_of(path)
        spec = {"token": reports.token_of(authorization), "audiences": [target.audience]}
        review = self._client.create(TOKEN_REVIEWS, {"metadata": {}, "spec": spec}, timeout_s=_CALL_S)
        reports.admit(review.status, target)
        status = reports.read(body)
        if status is None:
            return {}
        manifest = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": target.name, "namespace": target.namespace},
            "status": {"trainerStatus": to_builtins(status)},
        }
        saved = reports.checkpoint(status)
        self._client.apply(
            TRAIN_JOBS, manifest, field_manager=reports.FIELD_MANAGER, subresource="status", timeout_s=_CALL_S
        )
        if saved:
            self._note(target, saved)
        return {"trainerStatus": to_builtins(status)}

    def _note(self, target: reports.ReportTarget, saved: str) -> None:
        """Write the checkpoint on the TrainJob's gang, where the planner reads it; ignore a gang that is gone."""
        of_job = f"{names.TRAIN_JOB}={target.name}"
        for group in self._client.list(POD_GROUPS, target.namespace, label_selector=of_job, timeout_s=_CALL_S):
            meta = group.metadata
            if meta.annotations.get(names.CHECKPOINT) != saved:
                body = {"metadata": {"uid": meta.uid, "annotations": {names.CHECKPOINT: saved}}}
                with suppress(NotFound, Conflict):
                    self._client.merge_patch(POD_GROUPS, meta.name, body, meta.namespace, timeout_s=_CALL_S)


class ReportServer:
    """HTTPS server for reports, which runs in a daemon thread; a pool of threads makes the calls to the API server."""

    def __init__(self, reports: Reports, host: str, port: int, tls: ServerTLS) -> None:
        self._reports = reports
        self._address = (host, port)
        self._tls = tls
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="report")
        self._limit = ReportLimit(OF_A_PEER)
        self._server: Threaded | None = None

    def start(self) -> None:
        """Bind the port and start to answer; raise OSError if the port is taken."""
        listening = listen(*self._address)
        log.info("status server of TrainJobs started", host=self._address[0], port=listening.getsockname()[1])
        self._server = Threaded("reports", self._app(), [listening], self._tls)
        self._server.start()

    def stop(self) -> None:
        """Free the port; do nothing if the server was not started."""
        if self._server:
            self._server.stop()
            self._server = None

    def _app(self) -> Starlette:
        async def report(request: Request) -> Response:
            try:
                request_parts = request.scope["path"], request.headers.get("authorization", ""), await _body(request)
            except reports.RefusedError as refused:
                return JSONResponse(reports.answer(refused), refused.status)
            except ClientDisconnect:  # nobody receives the response
                return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)
            async with self._limit.slot_for(request.client.host if request.client else ""):
                work = asyncio.get_running_loop().run_in_executor(self._pool, self._reports.answer, *request_parts)
                status, content = await work
            return JSONResponse(content, status)

        # Any path: the handler answers a wrong path in the same format as the API server.
        return Starlette(routes=[Route("/{path:path}", report, methods=["POST"])])


class ReportLimit:
    """Limit of the reports that are handled at a time for each address; must be used in a single event loop.

    Only addresses with current reports use memory.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._peers: dict[str, tuple[asyncio.Semaphore, int]] = {}
        """Maps an address to the semaphore for which its reports wait, and to the number of its current reports."""

    @asynccontextmanager
    async def slot_for(self, peer: str) -> AsyncIterator[None]:
        """Wait until a report from this address may be handled, and occupy a slot within the `with` block."""
        free, reports = self._peers.get(peer) or (asyncio.Semaphore(self._at_once), 0)
        self._peers[peer] = (free, reports + 1)
        try:
            async with free:
                yield
        finally:
            _, reports = self._peers.pop(peer)
            if reports > 1:
                self._peers[peer] = (free, reports - 1)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > reports.MAX_BYTES:
            raise reports.RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a report can have at most {reports.MAX_BYTES} bytes"
            )
    return bytes(body)


PASS_EVERY_S: Final = 300.0
"""Interval between passes over a running TrainJob, in seconds. A pass gives new authorities to the TrainJob's pods,
long before the old authorities expire."""


class Authorities:
    """The file with the status server's CA certificates, which the controller creates in a new installation."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pem(self) -> str:
        """Return the current CA certificates. Raise Obstacle if the file cannot be read yet."""
        try:
            return self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = f"the CA certificates of the status server, to which trainers report, cannot be read: {error}"
            raise Obstacle(why) from error


class TrainerReports:
    """The runtime plugin that gives trainers the URL of the status server; `ca_pem` returns its authorities (PEM)."""

    name = "TrainerReports"

    def __init__(self, url: str, ca_pem: Callable[[], str]) -> None:
        self._url = url.rstrip("/")
        self._ca_pem = ca_pem

    def enforce_pod_spec(self, info: Info) -> None:
        """Add the variables for reports, and the volume with the token, to the training pods."""
        if info.train_job is None:
            return
        base = f"{GROUP}/{VERSION}/namespaces/{info.owner.namespace}/trainjobs/{info.owner.name}/status"
        token = {"audience": base, "expirationSeconds": EXPIRES_S, "path": "token"}
        ca = {"name": _map_name(info.owner.name), "items": [{"key": "ca.crt", "path": "ca.crt"}]}
        source = {"projected": {"sources": [{"serviceAccountToken": token}, {"configMap": ca}]}}
        for pod_set in info.pod_sets:
            if pod_set.role not in _STEPS or pod_set.target is None:
                continue
            volume = _free(VOLUME, {each.get("name") for each in pod_set.spec.volumes})
            folder = _free(FOLDER, mounted_paths(info, pod_set))
            pod_set.volumes.append(Volume(volume, source, self.name, "trainers report their progress"))
            pod_set.target.mounts.append(Mount(volume, folder))
            variables = {
                "KUBEFLOW_TRAINER_SERVER_URL": f"{self._url}/apis/{base}",
                "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{folder}/ca.crt",
                "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{folder}/token",
            }
            sourced = {key: (value, "the status server") for key, value in variables.items()}
            pod_set.target.set(self.name, yielding(info, sourced))

    def build(self, plan: Plan) -> Iterable[Component]:
        """Build the ConfigMap with the status server's CA certificates."""
        if plan.owner.kind == "TrainJob" and any(self.name == each.plugin for s in plan.pod_sets for each in s.volumes):
            manifest = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": owned(plan.owner, _map_name(plan.owner.name)),
                "data": {"ca.crt": self._ca_pem()},
            }
            yield Component(manifest, self.name)


def _free(wanted: str, taken: Container[Any]) -> str:
    """Return a name or path that is not taken, because values in the pods are never replaced."""
    return next(each for each in chain([wanted], (f"{wanted}-{number}" for number in count(2))) if each not in taken)


def _map_name(train_job: str) -> str:
    return f"{train_job}-tls-config"
