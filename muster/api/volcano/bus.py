"""bus.volcano.sh/v1alpha1: Command."""

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, OwnerReference


class Command(Object):
    """Asks a controller to act on its target, e.g. AbortJob or CloseQueue. It has no spec."""

    action: str = ""
    """What to do, e.g. AbortJob, ResumeJob, OpenQueue, CloseQueue."""
    target: OwnerReference | None = None
    """The Job or Queue to do it to."""
    reason: str = ""
    """One word why."""
    message: str = ""
    """A sentence why."""


COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command", Command)
