"""The server's time for each page of a large cluster: 5,000 nodes and 10,000 gangs. It prints, and asserts no time."""

import sys
import time

import pytest
from web_world import Pages, cluster, gang

from muster.api.kubernetes.core import NODES
from web.serving import warm
from web.view import Caller

pytestmark = pytest.mark.storm
NODE_COUNT, GANGS, RUNNING, NAMESPACES, QUEUES = 5_000, 10_000, 2_000, 50, 100
PATHS = (
    *("/queues", "/gangs", "/gangs?page=40", "/gangs?state=Waiting&queue=q7", "/gangs/team-7/gang-7"),
    *("/topology", "/whatif", "/gangs/team-7/gang-9957/explain"),
)


@pytest.fixture(scope="module")
def pages() -> Pages:
    """The cluster, of which 2,000 gangs run on two nodes each."""
    pages = Pages({"user": Caller(name="root")})
    names = [f"node-{number:04d}" for number in range(NODE_COUNT)]
    cluster(pages, names, [f"q{number}" for number in range(QUEUES)])
    for number in range(GANGS):
        first = 2 * number
        nodes = names[first : first + 2] if number < RUNNING else ["", ""]
        gang(pages, f"team-{number % NAMESPACES}", f"gang-{number}", nodes, f"q{number % QUEUES}")
    began = time.perf_counter()
    warm(pages.site)
    sys.stderr.write(f"\nwarm after {time.perf_counter() - began:.1f} s")
    return pages


@pytest.mark.parametrize("path", PATHS)
def test_a_page_of_a_large_cluster_is_answered(pages: Pages, path: str) -> None:
    """The first time, again, and after a change of one gang."""
    told = []
    for what in ("first", "again", "after a change"):
        if what == "after a change":
            gang(pages, "team-7", "gang-7", ["node-0014", "node-0015"], "q8" if path else "q7")
        began, used = time.perf_counter(), time.process_time()
        answer = pages.get(path)
        used, took = time.process_time() - used, time.perf_counter() - began
        told.append(f"{what} {1000 * took:.0f} ms ({1000 * used:.0f} ms of a CPU)")
        assert answer.status == 200
    sys.stderr.write(f"\n{path}: {', '.join(told)}, {len(answer.text) // 1024} KiB")


def test_heartbeats_of_nodes_change_nothing(pages: Pages) -> None:
    """A node that only says that it lives makes no page anew."""
    before = pages.caches.total
    for node in pages.caches.all(NODES)[:100]:
        pages.caches.mirror(NODES).add_object(node)
    assert pages.caches.total == before
