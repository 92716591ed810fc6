"""What must hold of Jobs where nothing happens any more."""

from interleavings import properties
from interleavings.explorer import Check
from interleavings.jobs import JobRules, JobScene, JobWorld
from interleavings.world import Step, World
from muster.api.kubernetes.core import PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS


def safe(rules: JobRules) -> Check:
    """What must hold in every world, and no pass may end by a defect."""

    def check(before: World, step: Step, after: World) -> str | None:
        return rules.defects[0] if rules.defects else properties.safe(before, step, after)

    return check


def ended(world: World, scene: JobScene, *, failures: int = 0) -> str | None:
    """A sentence if something is not as it should be at the end; so many pods may have failed before."""
    over = {"Completed", "Failed"} if failures >= scene.retries else {"Completed"}
    assert isinstance(world, JobWorld)
    for name in scene.jobs:
        job = world.api.find(JOBS, "ns", name)
        phase = job.status["state"]["phase"] if job else "not made"
        if phase not in over:
            pods = [f"{pod.meta['name']} {pod.status.get('phase')}" for pod in world.api.all(PODS)]
            return f"Job {name} is {phase}; pods: {', '.join(pods) or 'none'}"
    for pod in world.api.all(PODS):
        kept = {"Succeeded", "Failed"} if failures else {"Succeeded"}
        if pod.status.get("phase") not in kept or pod.meta.get("deletionTimestamp"):
            return f"pod {pod.meta['name']} is left {pod.status.get('phase')}"
    for kind in (POD_GROUPS, PLACEMENTS):
        for one in world.api.all(kind):
            return f"{kind.kind} {one.meta['name']} is left: {one.text.decode()}"
    for process in (world.extender, world.controller):
        if process.open:
            return f"a request is not answered: {process.open[0][0]}"
    if world.controller.keys or world.controller.next_s is not None:
        return "the controller does not come to rest"
    return None
