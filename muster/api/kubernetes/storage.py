"""Claims, volumes and storage classes, reduced to the fields that affect the choice of nodes."""

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes import constraints, meta

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim that has been bound to its volume."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim with the node for which its volume is being provisioned."""
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Annotation of a claim that named the storage class before the field `storageClassName` existed."""
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class PersistentVolumeClaimSpec(Wire):
    """spec of a claim: its access modes, its storage class, and the volume to which the claim is bound."""

    access_modes: list[str] = field(default_factory=list)
    storage_class_name: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimStatus(Wire):
    """status of a claim: its phase, such as Bound, or Lost if the claim's volume no longer exists."""

    phase: str = ""


class PersistentVolumeClaim(meta.Object):
    """A PersistentVolumeClaim, by which pods use a volume."""

    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)

    @property
    def bound(self) -> bool:
        """True if the claim is permanently bound to its volume."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def storage_class(self) -> str:
        """Name of the claim's storage class; empty if the claim has none."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS) or self.spec.storage_class_name or ""


class VolumeNodeAffinity(Wire):
    """A node affinity that selects the nodes from which a volume can be reached."""

    required: constraints.NodeSelector | None = None


class PersistentVolumeSpec(Wire):
    """spec of a PersistentVolume: the nodes from which the volume can be reached."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(meta.Object):
    """A PersistentVolume, which may restrict the nodes on which pods with its claim can run."""

    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)


class StorageClass(meta.Object):
    """A StorageClass, which determines when its claims are bound to volumes."""

    volume_binding_mode: str = "Immediate"


CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim)
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", PersistentVolume, namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", StorageClass, namespaced=False)
