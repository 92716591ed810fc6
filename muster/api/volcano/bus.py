"""bus.volcano.sh/v1alpha1: Command."""

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, OwnerReference


class Command(Object):
    """A request to a controller to act on the target. It has no spec."""

    action: str = ""
    """The action, e.g. AbortJob, ResumeJob, OpenQueue, CloseQueue."""
    target: OwnerReference | None = None
    """The Job or Queue to act on."""
    reason: str = ""
    """Reason, in one word."""
    message: str = ""
    """Reason, in a sentence."""


COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command", Command)
