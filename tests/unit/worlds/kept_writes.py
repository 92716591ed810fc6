"""What the extender writes after a cycle, as words."""

import re
from typing import Any
from zlib import crc32

from extender_world import World
from guarded_api import GuardedApi
from guarded_extender import Process
from life_world import text_of

from extender.planner.framework.session import Session

_UUID = re.compile(r"\w{8}(-\w{4}){3}-\w{12}")


class NotingApi(GuardedApi):
    """An API server that notes what is written."""

    def __init__(self, package: Any) -> None:
        super().__init__(package)
        self.words: list[str] = []

    def merge_patch(self, res: Any, name: str, patch: Any, namespace: str | None = None, **more: Any) -> Any:
        """See Client."""
        self.words.append(f"patch {res.plural} {name} {text_of(patch)} {text_of(more)}")
        return super().merge_patch(res, name, patch, namespace, **more)

    def strategic_patch(self, res: Any, name: str, patch: Any, namespace: str | None = None, **more: Any) -> Any:
        """See Client."""
        self.words.append(f"strategic {res.plural} {name} {text_of(patch)} {text_of(more)}")
        return super().strategic_patch(res, name, patch, namespace, **more)

    def create(self, res: Any, obj: Any, namespace: str | None = None, **more: Any) -> Any:
        """See Client."""
        self.words.append(f"create {res.plural} {text_of(obj)}")
        return super().create(res, obj, namespace, **more)

    def apply(self, res: Any, obj: Any, **more: Any) -> Any:
        """See Client."""
        self.words.append(f"apply {res.plural} {text_of(obj)} {text_of(more)}")
        return super().apply(res, obj, **more)

    def delete(self, res: Any, name: str, namespace: str | None = None, **more: Any) -> None:
        """See Client."""
        self.words.append(f"delete {res.plural} {name} {text_of(more)}")
        super().delete(res, name, namespace, **more)

    def evict(self, namespace: str, name: str, uid: str, **more: Any) -> None:
        """See Client."""
        self.words.append(f"evict {namespace} {name} {uid} {text_of(more)}")
        super().evict(namespace, name, uid, **more)


class NotingProcess(Process):
    """The writers, with that API server."""

    api_type = NotingApi


def written(world: World, session: Session) -> list[str]:
    """All writes and Events of a cycle."""
    process = NotingProcess(world)
    try:
        process.carry_out(session)
    finally:
        process.stop()
    events = [f"event {text_of(each.partition(': ')[0].split())} {text_of(each)}" for each in process.events]
    words = [*process.api.words, *events]  # type: ignore[attr-defined]
    return sorted(map(_short, words))


def _short(word: str) -> str:
    """A write or an Event by its beginning, and a hash of all of it."""
    whole = _UUID.sub("-", word)
    return f"{whole[:60].rstrip()} {crc32(whole.encode()):08x}"
