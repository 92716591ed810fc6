"""All orders of the steps of controller, extender, kube-scheduler and kubelets around a Volcano Job."""

import sys

import pytest
from interleavings import properties
from interleavings.explorer import explore
from interleavings.job_properties import ended, safe
from interleavings.jobs import JobRules, JobScene
from interleavings.world import Faults

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800), pytest.mark.usefixtures("no_logs")]


@pytest.mark.parametrize(("faults", "least"), [
    pytest.param(Faults(), 300, id="no fault"),
    pytest.param(Faults(controller_crash=1), 1000, id="a crash of the controller"),
])  # fmt: skip
def test_a_job_completes_whatever_the_order(faults: Faults, least: int) -> None:
    """A Job of two pods completes and leaves nothing behind, in whatever order its steps are taken."""
    scene = JobScene(gangs={}, jobs={"a": 2})
    rules = JobRules(scene)
    found = explore(
        rules,
        rules.first(faults),
        check=safe(rules),
        at_rest=properties.at_rest,
        at_end=lambda world: ended(world, scene),
    )
    sys.stderr.write(f"\n{found}\n")
    assert not found.failure, found.told()
    assert found.complete
    assert found.ends
    assert found.worlds > least
