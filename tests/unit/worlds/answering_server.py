"""An API server with an answer to each request, as status, body and warnings."""

import json
from typing import Any

from loopback_server import Loopback

Answer = tuple[int, Any, list[str]]
"""The status, the body, and the Warning headers."""
FORBIDDEN: Answer = (403, {"kind": "Status", "reason": "Forbidden", "message": "no", "details": {"kind": "x"}}, [])


class Server:
    """Gives the `answers` to "METHOD path", else the `other` one, as for an unknown kind; notes what is asked and sent.

    A watch gets the `events`, then a bookmark, and ends; after that the server has no history for it.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.other: Answer = (404, "404 page not found", [])
        self.events: list[Any] = []
        self.requests: list[str] = []
        self.bodies: list[Any] = []

    def answer(self, method: str, path: str, query: str) -> Answer:
        """The answer to one request."""
        self.requests.append(f"{method} {path}{query and f'?{query}'}")
        if "watch=1" not in query:
            return self.answers.get(f"{method} {path}", self.other)
        events, self.events = self.events, []
        if events:
            lines = [{"type": "MODIFIED", "object": each} for each in events]
            lines.append({"type": "BOOKMARK", "object": {"kind": "Job", "metadata": {"resourceVersion": "7"}}})
            return (200, "".join(json.dumps(each) + "\n" for each in lines), [])
        return (410, {"kind": "Status", "reason": "Expired"}, [])

    def missing(self, request: str, name: str) -> None:
        """Answers as if there were no such object."""
        body = {"kind": "Status", "reason": "NotFound", "message": f"{name} not found", "details": {"name": name}}
        self.answers[request] = (404, body, [])

    def handler(self) -> type[Loopback]:
        """The handler of its requests."""
        server = self

        class Handler(Loopback):
            def reply(self) -> None:
                if length := int(self.headers.get("content-length", 0)):
                    server.bodies.append(json.loads(self.rfile.read(length)))
                path, _, query = self.path.partition("?")
                status, body, warnings = server.answer(self.command, path, query)
                self.answer(body, status, warnings)

        return Handler
