"""Volumes as far as they decide where a pod can run: claims, volumes and storage classes."""

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.constraints import NodeSelector
from muster.api.kubernetes.meta import Object

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding is done."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim that is being provisioned for this node."""
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Annotation that named the storage class before there was a field."""
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class PersistentVolumeClaimSpec(Wire):
    """What a claim asks for, and the volume that it got."""

    access_modes: list[str] = field(default_factory=list)
    storage_class_name: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimStatus(Wire):
    """Whether a claim is bound, or has lost its volume."""

    phase: str = ""


class PersistentVolumeClaim(Object):
    """A claim: a pod's wish for a volume."""

    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)

    @property
    def bound(self) -> bool:
        """Whether its volume is its own for good."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def storage_class(self) -> str:
        """Name of its storage class; empty if it has none."""
        return self.metadata.annotations.get(BETA_STORAGE_CLASS) or self.spec.storage_class_name or ""


class VolumeNodeAffinity(Wire):
    """From which nodes a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire):
    """What a volume says about nodes."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Object):
    """A volume: it decides on which nodes the pods of its claim can be."""

    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)


class StorageClass(Object):
    """A storage class: when its claims are bound."""

    volume_binding_mode: str = "Immediate"


CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim)
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", PersistentVolume, namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", StorageClass, namespaced=False)
