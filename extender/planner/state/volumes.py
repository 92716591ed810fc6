"""The volumes of the cluster: claims, persistent volumes and storage classes, kept by events."""

from collections.abc import Callable
from copy import copy
from typing import TypeVar

from muster.api.kubernetes.storage import READ_WRITE_ONCE_POD, PersistentVolume, PersistentVolumeClaim, StorageClass

T = TypeVar("T")


class Volumes:
    """Claims, volumes and storage classes; `generation` grows with every change that matters to scheduling.

    Every `on_*` takes one object that changed (None: gone), and returns True if that matters to scheduling.
    """

    def __init__(self) -> None:
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.exclusive: set[str] = set()
        """Keys of claims that one pod at a time may use (ReadWriteOncePod)."""
        self.generation = 0
        self._shared = False

    def share(self) -> "Volumes":
        """Return the volumes as they are now; they are not changed afterwards and may not be changed."""
        self._shared = True
        return copy(self)

    def _own(self) -> None:
        if self._shared:
            self.claims, self.volumes, self.classes = dict(self.claims), dict(self.volumes), dict(self.classes)
            self.exclusive, self._shared = set(self.exclusive), False

    def on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
        """Take a claim: its access modes, and its volume."""
        self._own()
        key = (new or old or PersistentVolumeClaim()).metadata.key
        exclusive = new is not None and READ_WRITE_ONCE_POD in new.spec.access_modes
        (self.exclusive.add if exclusive else self.exclusive.discard)(key)
        return self._put(self.claims, key, new, _decisive)

    def on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
        """Take a volume, whose node affinity and labels decide where it can be used."""
        self._own()
        name = (new or old or PersistentVolume()).metadata.name
        return self._put(self.volumes, name, new, lambda volume: (volume.spec, volume.metadata.labels))

    def on_storage_class(self, old: StorageClass | None, new: StorageClass | None) -> bool:
        """Take a storage class, whose binding mode decides if a claim waits for its first pod before it is bound."""
        self._own()
        name = (new or old or StorageClass()).metadata.name
        return self._put(self.classes, name, new, lambda storage_class: (storage_class.volume_binding_mode,))

    def _put(self, table: dict[str, T], key: str, new: T | None, decisive: Callable[[T], tuple[object, ...]]) -> bool:
        """Put or remove an object; return True if its decisive parts changed."""
        known = table.pop(key, None)
        if new is not None:
            table[key] = new
        matters = (decisive(known) if known else None) != (decisive(new) if new else None)
        self.generation += matters
        return matters


def _decisive(claim: PersistentVolumeClaim) -> tuple[object, ...]:
    meta = claim.metadata
    return claim.spec, claim.status, meta.uid, meta.annotations, meta.deletion_timestamp is None
