"""The server of pages over caches that a test fills, and a browser's requests to it, without any network."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from builders import manifests
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from history.store import HistoryStore
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from web.app import make_app
from web.caches import PageCaches
from web.site import Site
from web.view import Caller

JSON = dict[str, Any]
HERE = "pages.example"


class Answer(NamedTuple):
    """What a browser gets."""

    status: int
    headers: Mapping[str, str]
    text: str


class Known:
    """Callers by the value of one cookie, with all rights."""

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        self.callers = dict(callers)
        self.client = Client(ClientConfig("http://127.0.0.1:1"))

    def credentials_of(self, request: Request) -> str:
        """The cookie."""
        return request.cookies.get("who", "")

    def account_of(self, request: Request) -> str:
        """The caller's account."""
        return self._known(request).account

    def caller_of(self, request: Request) -> Caller:
        """The caller of the cookie."""
        return self._known(request)

    def _known(self, request: Request) -> Caller:
        caller = self.callers.get(request.cookies.get("who", ""))
        if caller is None:
            raise HTTPException(401, "sign in")
        return caller

    def may(self, request: Request, right: ResourceAttributes) -> bool:
        """All that are known may do everything in what they see."""
        return self.caller_of(request).scope.has(right.namespace)

    def client_of(self, request: Request) -> AbstractContextManager[Client]:
        """A client of no API server."""
        self.caller_of(request)
        return nullcontext(self.client)

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

    def __init__(self, callers: Mapping[str, Caller], *, history: HistoryStore | None = None) -> None:
        self.caches = PageCaches(Client(ClientConfig("http://127.0.0.1:1")))
        self.site = Site(self.caches, Known(callers), history=history, now=lambda: 1.8e9, not_ready=lambda: None)
        self.app = make_app(self.site)

    def put(self, resource: Resource[Any], *objects: JSON) -> None:
        """Have the caches see objects."""
        for each in objects:
            self.caches.mirror(resource).add_object(msgspec.convert(each, resource.type))

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


CREATED = "2026-11-26T08:00:00Z"


def job(namespace: str, name: str, queue: str = "default", size: int = 2) -> JSON:
    """A Volcano Job."""
    task = manifests.task("worker", size, template={"spec": manifests.pod_spec(limits={"nvidia.com/gpu": "4"})})
    uid, spec = f"{namespace}-{name}", {"queue": queue, "min_available": size}
    return manifests.job(name, [task], namespace, uid=uid, version="1", created=CREATED, phase="Pending", **spec)


def group(namespace: str, name: str, queue: str = "default", size: int = 2, **status: Any) -> JSON:
    """The PodGroup of a Job."""
    uid, owner = f"{namespace}-{name}-group", manifests.job_owner(name, f"{namespace}-{name}")
    return manifests.pod_group(
        f"{name}-group", size, namespace, queue=queue, uid=uid, version="1", created=CREATED, owner=owner, status=status
    )


def pods(namespace: str, name: str, nodes: Iterable[str], gpus: int = 4) -> list[JSON]:
    """Its pods, on these nodes; an empty name: not bound yet."""
    return [
        manifests.pod(
            f"{name}-worker-{rank}",
            namespace,
            uid=f"{namespace}-{name}-worker-{rank}",
            version="1",
            node=node,
            gang=f"{name}-group",
            task="worker",
            limits={"nvidia.com/gpu": str(gpus)},
        )
        for rank, node in enumerate(nodes)
    ]


def node(name: str, gpus: int = 8) -> JSON:
    """A node."""
    labels = {"kubernetes.io/hostname": name}
    return manifests.node(name, gpus=gpus, cpu=64, memory="512Gi", uid=name, version="1", labels=labels)


def queue(name: str, **spec: Any) -> JSON:
    """A queue."""
    return manifests.queue(name, uid=name, version="1", **spec)


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
