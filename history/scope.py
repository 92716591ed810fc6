"""What a caller may see of the history and of the page."""

import msgspec


class Scope(msgspec.Struct, frozen=True):
    """The namespaces whose gangs a caller may see; None: those of the whole cluster."""

    namespaces: frozenset[str] | None = None

    def has(self, namespace: str) -> bool:
        """Return whether objects of that namespace may be shown, their names and numbers included."""
        return self.namespaces is None or namespace in self.namespaces


EVERYTHING = Scope()
"""The scope of who may list the gangs of the whole cluster."""
