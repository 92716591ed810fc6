"""Many gangs over two node pools, whose pairs are killed: each writes its own, and no node is planned by two."""

import base64
import json
from collections.abc import Callable
from itertools import combinations
from typing import Any, Final

import pytest
from gang_jobs import RECOVERY_S, History, attempt, job
from poolworld import DEFAULT, OF_B, POOL_B, client, in_queue, pools, space

from muster.api.names import SYSTEM_NAMESPACE
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane import rights
from musterctl.plane.plane import Plane
from musterctl.plane.state import EXTENDER, MUSTER_SCHEDULER, in_pool

__all__ = ["client", "pools", "space"]
pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
GANGS, KILLS = 40, 6
ACCOUNT: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:muster-scheduler"
KINDS: Final = frozenset({"podgroups", "placements", "pods", "queues"})


def held_at_once(history: History) -> list[str]:
    """Nodes that two pods with all of a node's GPUs held at the same time."""
    lives = [life for life in [*history.pods.values()] if life.node]
    return [one.node for one, other in combinations(lives, 2) if one.node == other.node and one.met(other)]


WRITES = frozenset({"create", "update", "patch", "delete"})


def written_by(pools: Plane, space: str) -> dict[tuple[str, str], set[str]]:
    """Kind and name of objects of a namespace, and of queues → the pairs that have written them."""
    found: dict[tuple[str, str], set[str]] = {}
    payload = rights.token_file(pools.root / "tokens", "muster-scheduler-b").read_text().split(".")[1]
    credential = f"JTI={json.loads(base64.urlsafe_b64decode(payload + '=' * (-len(payload) % 4)))['jti']}"
    with (pools.root / "audit.log").open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            reference, user = event.get("objectRef") or {}, event["user"]
            if event["verb"] not in WRITES or user["username"] != ACCOUNT:
                continue
            if reference.get("namespace", "") not in {space, ""} or reference.get("resource") not in KINDS:
                continue
            if not reference.get("name"):  # of a new object it is not known yet; others write it afterwards
                continue
            ids = (user.get("extra") or {}).get("authentication.kubernetes.io/credential-id", [])
            who = "b" if credential in ids else "default"
            found.setdefault((reference["resource"], reference.get("name", "")), set()).add(who)
    return found


@pytest.mark.long
def test_a_storm_over_both_pools(pools: Plane, client: Client, space: str, wait_for: WaitFor) -> None:
    """Forty gangs and kills of both pairs: each gang on nodes of its pool, no node twice, one writer of each object."""
    with History(client, space) as history:
        for number in range(GANGS):
            name, queue = (f"b-{number}", ("b1", "b2")[number % 4 // 2]) if number % 2 else (f"d-{number}", "default")
            manifest = in_queue(job(name, space, replicas=1 + number % OF_B, run_s=1 + number % 3), queue)
            attempt(lambda one=manifest: client.create(JOBS, one, space))
        for turn in range(KILLS):
            done = len(ended_jobs(client, space))
            assert done < GANGS, "the kills come while gangs wait"
            wait_for(lambda seen=done: len(ended_jobs(client, space)) > seen, RECOVERY_S, f"gangs before kill {turn}")
            bases = ((EXTENDER,), (MUSTER_SCHEDULER,), (EXTENDER, MUSTER_SCHEDULER))[turn % 3]
            for part in (in_pool(base, pool) for base in bases for pool in ("", "b")):
                pools.part(part).kill()
                pools.part(part).start()
        wait_for(lambda: len(ended_jobs(client, space)) == GANGS, 2 * RECOVERY_S, "all gangs to end")
        assert held_at_once(history) == []
        for life in [*history.pods.values()]:
            assert life.nodes <= set(POOL_B if life.gang.startswith("b-") else DEFAULT), life.gang
    found = written_by(pools, space)
    assert {kind for kind, _ in found} >= {"podgroups", "placements", "pods", "queues"}
    for (kind, name), who in found.items():
        of_b = name.startswith("b-") or name in {"team-b", "b1", "b2"}
        assert who == {"b" if of_b else "default"}, (kind, name)


def ended_jobs(client: Client, space: str) -> list[str]:
    """The names of completed Jobs."""
    return [each.metadata.name for each in client.list(JOBS, space) if each.status.state.phase == "Completed"]
