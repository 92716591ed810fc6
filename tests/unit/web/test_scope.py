"""Nothing of a namespace that a caller may not see leaves the server, on any page, as data or in a stream."""

import re
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from histories import gang_of_one
from hypothesis import given, settings
from hypothesis import strategies as st
from web_world import Pages, cluster, gang

from history.model import EVERYTHING, MEMORY, RowChanges, Scope
from history.store import HistoryStore
from history.usage import SEEN
from web.app import ROUTES, Page
from web.view import Caller, View

_PATTERN = re.compile(r"{(\w+)(?::\w+)?}")
NOW = 1.8e9
HIDDEN = r"zzhidden[-\w]*"
MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata: {name: tried}
spec:
  parallelism: 4
  completions: 4
  template:
    metadata: {labels: {muster.dev/framework: plain}}
    spec:
      schedulerName: muster
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
"""
NAMESPACES = st.lists(st.booleans(), min_size=2, max_size=5)
GANGS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.booleans(), st.booleans()), min_size=1, max_size=8)


def filled(page: Page, values: dict[str, str]) -> list[str]:
    """The path with the values, by each kind of thing that it may be about."""
    kinds = ("job", "gang", "pod", "jobs", "Job") if "{kind}" in page.path else ("",)
    each = [values | {"kind": kind} for kind in kinds]
    return [_PATTERN.sub(partial(_value, known), page.path) for known in each]


def _value(known: dict[str, str], part: re.Match[str]) -> str:
    return known.get(part[1], "x")


def urls_about(namespace: str, name: str) -> list[str]:
    """The URLs of everything that may be read about a gang, and of all pages."""
    values = {"namespace": namespace, "name": name, "gang": f"{name}-group", "action": "delete", "rank": "0"}
    urls = [url for page in ROUTES if page.method == "GET" for url in filled(page, values)]
    urls += [f"/api/explain/{namespace}/{name}?kind={kind}" for kind in ("job", "pod")]
    urls += [f"/api/explain/{namespace}/{name}?output=text", f"/live?page=gang/{namespace}", "/live?page=queues"]
    urls += ["/api/explain/nowhere/nothing", "/no-such-page"]
    urls += [f"/usage?by={by}" for by in ("queue", "namespace", "user", "workload", "day")]
    urls += [f"/api/usage?by={by}" for by in ("queue", "namespace", "user", "workload", "day")]
    return [*urls, f"/api/history/{namespace}/{name}", f"/api/history?name={name}", "/api/history?queue=research"]


def lived(namespace: str, name: str, queue: str) -> RowChanges:
    """What the history has of a gang that has ended."""
    return gang_of_one(namespace, name, round((NOW - 7200) * 1000), 11_000, queue=queue, user=name)


@settings(max_examples=settings().max_examples * 2 // 5)
@given(seen=NAMESPACES, gangs=GANGS, nodes=st.booleans(), queues=st.booleans())
def test_no_name_of_another_namespace_is_in_any_answer(
    *, seen: list[bool], gangs: list[tuple[int, int, bool, bool]], nodes: bool, queues: bool
) -> None:
    """For any objects and scope, neither namespaces nor gangs, pods or queues of others are in what a caller gets."""
    names = [f"{'mine' if his else 'zzhidden'}-{number}" for number, his in enumerate(seen)]
    caller = Caller(
        name="ada", scope=Scope(frozenset(name for name in names if "mine" in name)), nodes=nodes, queues=queues
    )
    store = HistoryStore.for_writing(MEMORY)
    pages = Pages({"user": caller}, history=store)
    cluster(pages, ("node-0", "node-1", "node-2"), ("default", "zzhiddenqueue"))
    own: list[tuple[str, str]] = [("mine-0", "nothing")]
    for number, (where, size, runs, theirs) in enumerate(gangs):
        namespace = names[where % len(names)]
        hidden = namespace.startswith("zz")
        name = f"{'zzhidden' if hidden else 'own'}gang{number}"
        queue = "zzhiddenqueue" if hidden and theirs else "default"
        gang(pages, namespace, name, [f"node-{each % 3}" if runs else "" for each in range(size)], queue)
        own += [] if hidden else [(namespace, name)]
        store.write(lived(namespace, name, queue), {SEEN: str(round(NOW * 1000))})
    urls = dict.fromkeys(url for gang_ in own[-2:] for url in urls_about(*gang_))
    tried = {namespace: urlencode({"manifests": MANIFEST, "namespace": namespace}) for namespace, _ in own[-2:]}
    texts = {url: pages.get(url).text for url in urls}
    texts |= {f"POST /whatif of {each}": pages.post("/whatif", form).text for each, form in tried.items()}
    allowed = {"zzhiddenqueue"} if queues else set[str]()
    assert {url: found for url, text in texts.items() if (found := {*re.findall(HIDDEN, text)}) - allowed} == {}
    store.close()


def test_who_sees_everything_is_told_the_names() -> None:
    """The same words that are left out for others are there for an administrator: the test above can fail."""
    pages = Pages({"user": Caller(name="root"), "ada": Caller(name="ada", scope=Scope(frozenset({"mine"})))})
    cluster(pages)
    gang(pages, "theirs", "running", ["node-0", "node-0", "node-1", "node-1"])
    gang(pages, "mine", "waiting")
    assert "Job theirs/running" in pages.get("/api/explain/mine/waiting").text
    told = pages.get("/api/explain/mine/waiting", "ada").text
    assert "theirs" not in told
    assert "a gang of another namespace (queue default)" in told
    assert not re.findall(r"16 GPUs|4 pods on 2 nodes|since [0-9]", told.partition('"relief"')[2])
    assert "4 pods on 2 nodes" in pages.get("/api/explain/mine/waiting").text


def test_who_sees_everything_is_told_of_the_past() -> None:
    """The same for the history and for usage."""
    store = HistoryStore.for_writing(MEMORY)
    callers = {"user": Caller(name="root"), "ada": Caller(name="ada", scope=Scope(frozenset({"mine"})))}
    pages = Pages(callers, history=store)
    store.write(lived("theirs", "zzhidden", "research"), {SEEN: str(round(NOW * 1000))})
    store.write(lived("mine", "own", "research"), {})
    urls = ("/history", "/usage?by=workload&by=user", "/api/history", "/api/usage?by=user", "/usage.csv?by=user")
    for url in urls:
        whole, his = pages.get(url), pages.get(url, "ada")
        assert (whole.status, his.status) == (200, 200), url
        assert "zzhidden" in whole.text, url
        assert "zzhidden" not in his.text, url
        assert "own" in his.text, url
    store.close()


def test_what_is_not_there_and_what_may_not_be_seen_are_told_alike() -> None:
    """The answer about a gang of another namespace is that about one that does not exist."""
    pages = Pages({"user": Caller(name="ada", scope=Scope(frozenset({"mine"})))})
    cluster(pages)
    gang(pages, "theirs", "running")

    def answers(namespace: str) -> list[Any]:
        urls = [f"/api/explain/{namespace}/running", f"/act/delete/jobs/{namespace}/running"]
        found = [pages.get(url) for url in urls]
        return [(each.status, each.text.replace(namespace, "NS")) for each in found]

    assert answers("theirs") == answers("theyrs")
    assert answers("theirs")[0][0] == 404


def test_a_stream_is_silent_about_others() -> None:
    """The mark of each page stays the same when something changes in another namespace."""
    caller = Caller(name="ada", scope=Scope(frozenset({"mine"})))
    pages = Pages({"user": caller})
    cluster(pages)
    gang(pages, "mine", "waiting")
    marks = [View(pages.caches, caller).mark(page) for page in ("gangs", "gang/mine", "gang/theirs", "queues")]
    gang(pages, "theirs", "other")
    assert marks == [View(pages.caches, caller).mark(page) for page in ("gangs", "gang/mine", "gang/theirs", "queues")]
    gang(pages, "mine", "more")
    assert marks[0] != View(pages.caches, caller).mark("gangs")
    assert marks[1] != View(pages.caches, caller).mark("gang/mine")


def test_a_mark_changes_if_a_namespace_is_deleted_while_another_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the sum of their numbers stays."""
    pages, marks = Pages({}), []
    for generations in ({"a": 100, "b": 50}, {"b": 150}):
        monkeypatch.setattr(pages.caches, "namespaces", lambda known=generations: [*known])
        monkeypatch.setattr(pages.caches, "generation", generations.get)
        marks.append(View(pages.caches, Caller(scope=EVERYTHING)).mark("gangs"))
    assert marks[0] != marks[1]
