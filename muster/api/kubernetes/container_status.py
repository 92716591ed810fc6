"""How the containers of a pod are, as kubelet says."""

from msgspec import field

from muster.api.base import Wire
from muster.api.kubernetes.requirements import Quantities, ResourceRequirements


class ContainerStateWaiting(Wire):
    """Why a container does not run yet, or not again."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Wire):
    """How a container ended: policies ask for its exit code."""

    exit_code: int
    reason: str = ""
    finished_at: str | None = None


class ContainerState(Wire):
    """What keeps a container from running: it waits, or has ended. Neither is set while it runs."""

    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Wire):
    """How one container is: ready or not, how often restarted, how ended."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    resources: ResourceRequirements | None = None
    """What it has now; a resize that was asked for may not have happened yet."""
    allocated_resources: Quantities = field(default_factory=dict)
    """What kubelet has set aside for it."""
    state: ContainerState = field(default_factory=ContainerState)
