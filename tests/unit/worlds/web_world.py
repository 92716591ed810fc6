"""The server of pages over caches that a test fills, and a browser's requests to it, without any network."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from history.store import Store
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.config import Config
from musterctl.web.app import make_app
from musterctl.web.caches import Caches
from musterctl.web.caller import Caller
from musterctl.web.site import Site

JSON = dict[str, Any]
HERE = "pages.example"


class Answer(NamedTuple):
    """What a browser gets."""

    status: int
    headers: Mapping[str, str]
    text: str


class Known:
    """Callers by the value of one cookie, with all rights."""

    signs_in = True

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        self.callers = dict(callers)
        self.client = Client(Config("http://127.0.0.1:1"))

    def caller_of(self, request: Request) -> Caller:
        """The caller of the cookie."""
        caller = self.callers.get(request.cookies.get("who", ""))
        if caller is None:
            raise HTTPException(401, "sign in")
        return caller

    def may(self, request: Request, right: ResourceAttributes) -> bool:
        """All that are known may do everything in what they see."""
        return self.caller_of(request).scope.has(right.namespace)

    def client_of(self, request: Request) -> Client:
        """A client of no API server."""
        self.caller_of(request)
        return self.client

    def give_back(self, client: Client) -> None:
        """Nothing to do."""

    def signed_in(self, token: str) -> Response:
        """The token is the cookie."""
        answer = RedirectResponse("/", 303)
        answer.set_cookie("who", token)
        return answer

    def signed_out(self) -> Response:
        """Forget it."""
        return RedirectResponse("/signin", 303)

    def with_key(self, request: Request) -> Response | None:
        """There is none."""
        del request


class Pages:
    """A server of pages."""

    def __init__(self, callers: Mapping[str, Caller], *, history: Store | None = None) -> None:
        self.caches = Caches(Client(Config("http://127.0.0.1:1")))
        self.site = Site(self.caches, Known(callers), history=history, now=lambda: 1.8e9, not_ready=lambda: None)
        self.app = make_app(self.site)

    def put(self, resource: Resource[Any], *objects: JSON) -> None:
        """Have the caches see objects."""
        for each in objects:
            self.caches.mirror(resource).put(msgspec.convert(each, resource.type))

    def remove(self, resource: Resource[Any], key: str) -> None:
        """Have the caches see that one is gone."""
        self.caches.mirror(resource).remove(key)

    def get(self, url: str, who: str = "user", **headers: str) -> Answer:
        """What a caller gets."""
        return asyncio.run(self.ask("GET", url, who, headers))

    def post(self, url: str, body: str = "", who: str = "user", **headers: str) -> Answer:
        """The same for a form, by default of a page of this server."""
        return asyncio.run(self.ask("POST", url, who, {"sec-fetch-site": "same-origin", **headers}, body))

    async def ask(self, method: str, url: str, who: str, headers: Mapping[str, str], body: str = "") -> Answer:
        """The answer to one request; of a stream, what comes before it first waits."""
        parts, sent = urlsplit(url), []
        given = {"host": HERE, "cookie": f"who={who}"} | {
            name.replace("_", "-"): each for name, each in headers.items()
        }
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), each.encode()) for name, each in given.items()],
            "server": (HERE, 443),
            "client": ("192.0.2.1", 1),
        }
        waiting = [{"type": "http.request", "body": body.encode(), "more_body": False}]

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        begun = {name.decode(): each.decode() for name, each in sent[0]["headers"]}
        return Answer(sent[0]["status"], begun, b"".join(each.get("body", b"") for each in sent[1:]).decode())


def job(namespace: str, name: str, queue: str = "default", size: int = 2) -> JSON:
    """A Volcano Job."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    task = {"name": "worker", "replicas": size, "template": {"spec": {"containers": [container]}}}
    return {
        "metadata": _meta(namespace, name, "2026-11-26T08:00:00Z"),
        "spec": {"queue": queue, "minAvailable": size, "tasks": [task]},
        "status": {"state": {"phase": "Pending"}},
    }


def group(namespace: str, name: str, queue: str = "default", size: int = 2, **status: Any) -> JSON:
    """The PodGroup of a Job."""
    owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": name, "uid": f"{namespace}-{name}"}
    return {
        "metadata": _meta(namespace, f"{name}-group", "2026-11-26T08:00:00Z")
        | {"ownerReferences": [owner | {"controller": True}]},
        "spec": {"minMember": size, "queue": queue},
        "status": {"phase": "Inqueue", **status},
    }


def pods(namespace: str, name: str, nodes: Iterable[str], gpus: int = 4) -> list[JSON]:
    """Its pods, on these nodes; an empty name: not bound yet."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    notes = {"scheduling.k8s.io/group-name": f"{name}-group", "volcano.sh/task-spec": "worker"}
    return [
        {
            "metadata": _meta(namespace, f"{name}-worker-{rank}") | {"annotations": notes},
            "spec": {"schedulerName": "muster", "nodeName": node, "containers": [container]},
            "status": {"phase": "Running" if node else "Pending"},
        }
        for rank, node in enumerate(nodes)
    ]


def node(name: str, gpus: int = 8) -> JSON:
    """A node."""
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts, "conditions": [ready]},
    }


def queue(name: str, **spec: Any) -> JSON:
    """A queue."""
    parent = {} if name == "root" else {"parent": "root"}
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"weight": 1, **parent, **spec},
        "status": {"state": "Open"},
    }


def gang(pages: Pages, namespace: str, name: str, nodes: Iterable[str] = ("", ""), queue: str = "default") -> None:
    """Have the caches see a Job with its gang and pods."""
    where = [*nodes]
    phase = "Running" if all(where) else "Inqueue"
    pages.put(JOBS, job(namespace, name, queue, len(where)))
    pages.put(POD_GROUPS, group(namespace, name, queue, len(where), phase=phase))
    pages.put(PODS, *pods(namespace, name, where))


def cluster(pages: Pages, nodes: Iterable[str] = ("node-0", "node-1"), queues: Iterable[str] = ("default",)) -> None:
    """Have the caches see nodes and queues."""
    pages.put(NODES, *(node(name) for name in nodes))
    pages.put(QUEUES, queue("root"), *(queue(name) for name in queues))


def _meta(namespace: str, name: str, created: str = "") -> JSON:
    stamp = {"creationTimestamp": created} if created else {}
    return {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "resourceVersion": "1", **stamp}
