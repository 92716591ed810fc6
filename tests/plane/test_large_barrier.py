"""A barrier of a thousand pods that something interrupts, while it fills or while it binds: the gang ends up whole."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import History, job, metric

from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.storm, pytest.mark.timeout(900)]
PODS_OF_GANG = 1000
STOPPED_S = 20.0
WHOLE_S = 300.0
WaitFor = Callable[..., Any]


def stop_the_extender(plane: Plane) -> None:
    """For 20 s: shorter than kube-scheduler waits for a bind, longer than it keeps its Lease."""
    pid = plane.part("extender").pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(STOPPED_S)  # what is tested is that it passes
    finally:
        os.kill(pid, signal.SIGCONT)


def restart_the_api_server(plane: Plane) -> None:
    """Every connection breaks, and calls under way have no answer."""
    plane.part("kube-apiserver").kill()
    plane.mend()


@pytest.mark.parametrize("happens", [stop_the_extender, restart_the_api_server])
@pytest.mark.parametrize("while_binding", [False, True], ids=["filling", "binding"])
def test_a_barrier_of_a_thousand_that_is_interrupted(
    happens: Callable[[Plane], None], *, while_binding: bool, fresh_plane: Callable[..., Plane], wait_for: WaitFor
) -> None:
    """Before the first binding, and when a tenth of the pods is bound; all run in the end, each bound once."""
    plane = fresh_plane(nodes=32)
    client = plane.client()
    with History(client, "default") as history:

        def bound() -> int:
            return sum(life.bound is not None for life in list(history.pods.values()))

        client.create(JOBS, job("gang", "default", replicas=PODS_OF_GANG, gpus=0, cpu="10m"), "default")
        if while_binding:
            wait_for(lambda: bound() >= PODS_OF_GANG // 10, WHOLE_S, "the first bindings")
        else:
            held = PODS_OF_GANG // 10
            wait_for(lambda: metric(plane, "extender", "muster_barrier_held") >= held, WHOLE_S, "calls to be held")
            assert not bound()
        happens(plane)

        def runs() -> bool:
            status = client.get(JOBS, "gang", "default").status
            return status.state.phase == "Running" and status.running == PODS_OF_GANG

        wait_for(runs, WHOLE_S, "the whole gang to run")
        assert not [life for life in history.pods.values() if len(life.nodes) > 1]
        half_s = history.half_placed_s("", PODS_OF_GANG)
        print(f"half placed for {half_s:.1f} s at most")  # noqa: T201 - a figure of a long run
