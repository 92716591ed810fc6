"""The volumes of the cluster: claims, persistent volumes and storage classes, kept by events."""

from muster.api.storage import READ_WRITE_ONCE_POD, PersistentVolume, PersistentVolumeClaim, StorageClass


class Volumes:
    """What pods' claims lead to. `generation` grows with every change that can decide something.

    A snapshot shares this object: what is made from it while it changes is labelled with the older generation, and so
    it is made again.
    """

    def __init__(self) -> None:
        self.claims: dict[str, PersistentVolumeClaim] = {}
        """By namespace/name."""
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.exclusive: set[str] = set()
        """Keys of claims that one pod at a time may use (ReadWriteOncePod)."""
        self.generation = 0

    def put_claim(self, claim: PersistentVolumeClaim) -> bool:
        """Add or update a claim; True if it matters to scheduling."""
        key = claim.metadata.key
        known = self.claims.get(key)
        self.claims[key] = claim
        (self.exclusive.add if READ_WRITE_ONCE_POD in claim.spec.access_modes else self.exclusive.discard)(key)
        return self._changed(known is None or _decisive(known) != _decisive(claim))

    def remove_claim(self, key: str) -> bool:
        """Forget a claim."""
        self.exclusive.discard(key)
        return self._changed(self.claims.pop(key, None) is not None)

    def put_volume(self, volume: PersistentVolume) -> bool:
        """Add or update a volume; True if it matters to scheduling."""
        known = self.volumes.get(volume.metadata.name)
        self.volumes[volume.metadata.name] = volume
        return self._changed(
            known is None or (known.spec, known.metadata.labels) != (volume.spec, volume.metadata.labels)
        )

    def remove_volume(self, name: str) -> bool:
        """Forget a volume."""
        return self._changed(self.volumes.pop(name, None) is not None)

    def put_class(self, storage_class: StorageClass) -> bool:
        """Add or update a storage class; True if it matters to scheduling."""
        known = self.classes.get(storage_class.metadata.name)
        self.classes[storage_class.metadata.name] = storage_class
        return self._changed(known is None or known.volume_binding_mode != storage_class.volume_binding_mode)

    def remove_class(self, name: str) -> bool:
        """Forget a storage class."""
        return self._changed(self.classes.pop(name, None) is not None)

    def _changed(self, matters: bool) -> bool:  # noqa: FBT001 - private, and the one thing it is told
        self.generation += matters
        return matters


def _decisive(claim: PersistentVolumeClaim) -> tuple[object, ...]:
    meta = claim.metadata
    return claim.spec, claim.status, meta.uid, meta.annotations, meta.deletion_timestamp is None
