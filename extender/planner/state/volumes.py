"""The volumes of the cluster: claims, persistent volumes and storage classes, kept by events."""

from copy import copy

from muster.api.kubernetes.storage import READ_WRITE_ONCE_POD, PersistentVolume, PersistentVolumeClaim, StorageClass


class Volumes:
    """Claims, volumes and storage classes; `generation` grows with every change that matters to scheduling.

    A snapshot gets its maps, and the first change after that goes on with copies of them (see `share`). Every `on_*`
    takes one object that changed (None: gone), and returns True if that matters to scheduling.
    """

    def __init__(self) -> None:
        self.claims: dict[str, PersistentVolumeClaim] = {}
        """By namespace/name."""
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
        if new is None:
            key = old.metadata.key if old else ""
            self.exclusive.discard(key)
            return self._changed(self.claims.pop(key, None) is not None)
        key = new.metadata.key
        known = self.claims.get(key)
        self.claims[key] = new
        (self.exclusive.add if READ_WRITE_ONCE_POD in new.spec.access_modes else self.exclusive.discard)(key)
        return self._changed(known is None or _decisive(known) != _decisive(new))

    def on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
        """Take a volume, whose node affinity and labels decide where it can be used."""
        self._own()
        if new is None:
            return self._changed(self.volumes.pop(old.metadata.name if old else "", None) is not None)
        known = self.volumes.get(new.metadata.name)
        self.volumes[new.metadata.name] = new
        same = known is not None and (known.spec, known.metadata.labels) == (new.spec, new.metadata.labels)
        return self._changed(not same)

    def on_storage_class(self, old: StorageClass | None, new: StorageClass | None) -> bool:
        """Take a storage class, whose binding mode decides if a claim waits for its first pod before it is bound."""
        self._own()
        if new is None:
            return self._changed(self.classes.pop(old.metadata.name if old else "", None) is not None)
        known = self.classes.get(new.metadata.name)
        self.classes[new.metadata.name] = new
        return self._changed(known is None or known.volume_binding_mode != new.volume_binding_mode)

    def _changed(self, matters: bool) -> bool:  # noqa: FBT001 - private, and the one thing it is told
        self.generation += matters
        return matters


def _decisive(claim: PersistentVolumeClaim) -> tuple[object, ...]:
    meta = claim.metadata
    return claim.spec, claim.status, meta.uid, meta.annotations, meta.deletion_timestamp is None
