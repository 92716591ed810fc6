"""Who asks for a page, and what he may see. Pure."""

from msgspec import Struct, field

from history.scope import EVERYTHING, Scope


class Caller(Struct, frozen=True, kw_only=True):
    """One user, as the API server knows him, with what he may list."""

    name: str = ""
    """As the API server calls him; empty on loopback, where it is who has started the page."""
    scope: Scope = field(default_factory=Scope)
    """The namespaces whose gangs he may list."""
    nodes: bool = True
    """He may list nodes."""
    queues: bool = True
    """He may list Queues."""

    @property
    def everything(self) -> bool:
        """True for who may see the whole cluster: all gangs, nodes and queues."""
        return self.scope == EVERYTHING and self.nodes and self.queues
