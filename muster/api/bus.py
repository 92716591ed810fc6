"""bus.volcano.sh/v1alpha1: Command."""

from msgspec import field

from muster.api.base import Resource
from muster.api.meta import Object, OwnerReference


class Command(Object):
    """Asks a controller to act on its target, e.g. AbortJob or CloseQueue. It has no spec."""

    action: str = ""
    target: OwnerReference | None = None
    reason: str = ""
    message: str = ""


COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command", Command)
