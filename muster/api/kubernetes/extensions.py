"""CustomResourceDefinitions (apiextensions.k8s.io/v1), reduced to the versions that are served."""

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object, ReportedCondition


class DefinitionVersion(Wire):
    """One version of a kind."""

    name: str
    served: bool = True


class DefinitionSpec(Wire):
    """spec of a CRD."""

    versions: list[DefinitionVersion] = field(default_factory=list)


class DefinitionStatus(Wire):
    """`status` of a CRD, which is empty for a moment after its creation; `Established` means that it is served."""

    conditions: list[ReportedCondition] | None = None


class CustomResourceDefinition(Object):
    """A CRD."""

    spec: DefinitionSpec = field(default_factory=DefinitionSpec)
    status: DefinitionStatus = field(default_factory=DefinitionStatus)

    @property
    def established(self) -> bool:
        """True if the API server serves the kind."""
        return any(one.type == "Established" and one.status == "True" for one in self.status.conditions or ())

    def served(self, preferred: str) -> str | None:
        """Return the version to use: the preferred one if it is served, else the last that is; None if none is."""
        versions = [version.name for version in self.spec.versions if version.served] if self.established else []
        if preferred in versions:
            return preferred
        return versions[-1] if versions else None


DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    CustomResourceDefinition,
    namespaced=False,
)
