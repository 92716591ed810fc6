"""The Struct base of all wire types, and descriptors of resources."""

from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote

from msgspec import Struct
from msgspec.json import Decoder

T = TypeVar("T")


class Wire(Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """Base class of all wire types: field names in camelCase, defaults left out, no tracking by the garbage collector.

    The types are *trimmed*: a field that Muster does not read is dropped when decoding. Therefore never write a decoded
    Struct back with PUT; use a patch or server-side apply. `gc=False` is safe because no wire type refers to itself.
    """


def prepare() -> None:
    """Prepare all wire types, before any threads exist.

    msgspec inspects a Struct's fields when it first decodes one. If two threads first decode a type at the same time,
    one of them can see an incomplete type, which crashes the process with a segmentation fault.
    """
    waiting = [Wire]
    while waiting:
        struct = waiting.pop()
        Decoder(struct)
        waiting += struct.__subclasses__()


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A kind: its group, version and names in the API server, and the Struct that decodes it."""

    group: str
    version: str
    plural: str
    kind: str
    type: type[T]
    namespaced: bool = True

    def __post_init__(self) -> None:
        """Prepare the kind's Struct when the kind's module is imported (see `prepare`)."""
        Decoder(self.type)

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """The plural with the group, as in kubectl: `pods`, `jobs.batch.volcano.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def reference(self, name: str) -> str:
        """Return kind and name as kubectl writes them: job.batch.volcano.sh/train."""
        return f"{self.kind.lower()}.{self.group}/{name}" if self.group else f"{self.kind.lower()}/{name}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of a collection or object; None as `namespace` means all namespaces (for lists)."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [quote(name, safe="")] if name else []
        parts += [subresource] if subresource else []
        return "/".join(parts)
