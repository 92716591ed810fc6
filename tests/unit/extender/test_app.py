"""What kube-scheduler gets when a request, a verb or a page is not as it should be."""

import asyncio
from http import HTTPStatus
from typing import Any

import msgspec
import pytest
from app_world import ask

from extender import app
from extender.app import ExtenderVerbs, create_app
from extender.planner.reasons.verbs import VerbReason
from muster.api.kubernetes.extender import ExtenderArgs, ExtenderFilterResult
from muster.kube.trimming import LONG


def broken(_: object) -> Any:
    """A verb with a defect."""
    raise RuntimeError("a defect")


async def broken_later(_: object) -> Any:
    """A defect that shows after a wait."""
    raise RuntimeError("a defect")


APP = create_app(
    ExtenderVerbs(broken, broken, broken_later, broken),
    lambda: {"good": lambda: {"said": 1}, "bad": lambda: broken(None)},
)


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind", "preempt"])
def test_a_verb_that_fails_or_is_asked_in_bad_json_still_answers(verb: str) -> None:
    """With 200, since kube-scheduler reads no other body; where there is room for an error, it is told."""
    good = b'{"Pod":{"metadata":{},"spec":{}},"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"}'
    for body, reason in ((good, VerbReason.INTERNAL), (b"{", VerbReason.MALFORMED)):
        answer = ask(APP, "POST", f"/{verb}", body)
        assert answer.status == HTTPStatus.OK
        content = msgspec.json.decode(answer.body)
        if verb in {"filter", "bind"}:
            assert {name.lower(): value for name, value in content.items()}["error"] == reason
        else:
            assert not any(content.values() if isinstance(content, dict) else content)


def test_a_verb_sees_nothing_of_a_long_pod_that_nobody_reads() -> None:
    """Its call is answered as that of a short one, and its room counts."""
    seen: list[ExtenderArgs] = []

    def keep(args: ExtenderArgs) -> ExtenderFilterResult:
        seen.append(args)
        return ExtenderFilterResult(node_names=args.node_names or [])

    asked = create_app(ExtenderVerbs(keep, broken, broken_later, broken), dict)
    container = {"name": "main", "args": ["x"] * LONG, "resources": {"requests": {"cpu": "1"}}}
    pod = {"metadata": {"name": "p"}, "spec": {"tolerations": [{"key": "a"}] * LONG, "containers": [container]}}
    answer = ask(asked, "POST", "/filter", msgspec.json.encode({"Pod": pod, "NodeNames": ["a", "b"]}))
    assert msgspec.json.decode(answer.body)["NodeNames"] == ["a", "b"]
    (args,) = seen
    assert (args.pod.metadata.name, args.pod.spec.containers[0].resources.requests) == ("p", {"cpu": "1"})
    assert not args.pod.spec.tolerations
    assert not args.pod.spec.containers[0].args


def test_pages_of_plugins() -> None:
    """One that is there, one that fails, one that is unknown; the last answer names those that are there."""
    assert ask(APP, "GET", "/plugins/good").body == b'{"said":1}'
    assert ask(APP, "GET", "/plugins/bad").status == HTTPStatus.INTERNAL_SERVER_ERROR
    unknown = ask(APP, "GET", "/plugins/other")
    assert unknown.status == HTTPStatus.NOT_FOUND
    assert msgspec.json.decode(unknown.body)["pages"] == ["bad", "good"]


def test_other_paths_and_methods_are_refused() -> None:
    """Nothing is done by accident."""
    assert ask(APP, "GET", "/bind").status == HTTPStatus.METHOD_NOT_ALLOWED
    assert ask(APP, "POST", "/").status == HTTPStatus.NOT_FOUND


def test_others_have_their_turns_while_a_long_pod_is_shortened() -> None:
    """To read all of it at once would take too long."""
    body = msgspec.json.encode({"Pod": {"metadata": {"name": "x" * LONG}}})
    steps = app._short(body)
    for _ in range(2):
        assert steps.send(None) is None
    with pytest.raises(StopIteration) as ended:
        steps.send(None)
    assert len(ended.value.value) <= len(body)


@pytest.mark.parametrize("pieces", [[b"{" + b" " * 10], [b"{" + b" " * 5, b" " * 5]], ids=["at once", "in pieces"])
def test_a_call_that_is_too_large_is_refused_and_not_decided(
    monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]
) -> None:
    """More than any cluster's names take."""
    monkeypatch.setattr(app, "MAX_BODY_BYTES", 10)
    answer = ask(APP, "POST", "/filter", *pieces)
    assert ask(APP, "POST", "/filter", b"{" + b" " * 9).status == HTTPStatus.OK
    assert answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert msgspec.json.decode(answer.body)["error"] == "POST /filter: Request Entity Too Large"


def test_a_client_that_leaves_before_its_call_is_whole_gets_no_answer() -> None:
    """The verb is not asked either: half a call says nothing."""
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/bind", "headers": headers}
    asyncio.run(APP(scope, receive, send))  # type: ignore[arg-type] # it is a coroutine
    assert not messages
    assert not sent
