"""Kinds that extend the API server: CRDs, webhook configurations, and Secrets with certificates."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object, ReportedCondition


class DefinitionVersion(Wire):
    """One version of the kind that a CRD defines."""

    name: str
    served: bool = True


class DefinitionSpec(Wire):
    """spec of a CRD."""

    versions: list[DefinitionVersion] = field(default_factory=list)


class DefinitionStatus(Wire):
    """`status` of a CRD, empty for a moment after its creation; `Established` means that the kind is served."""

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
        """Return the preferred version if it is served, else the last served version; None if no version is served."""
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


class CertificateSecret(Object):
    """A Secret with its decoded data, which is not printed."""

    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return f"<Secret {self.metadata.key} {self.metadata.resource_version}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("key", self.metadata.key)]


class WebhookClientConfig(Wire):
    """Address at which an API server calls a webhook, and the certificate authorities to trust at this address."""

    url: str = ""
    """URL of the webhook; empty if the webhook is behind a Service."""
    ca_bundle: bytes | None = None
    """Certificates of the trusted certificate authorities, as PEM."""


class Webhook(Wire):
    """One webhook of a configuration."""

    name: str
    client_config: WebhookClientConfig = field(default_factory=WebhookClientConfig)


class WebhookConfiguration(Object):
    """A MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""

    webhooks: list[Webhook] | None = None


_ADMISSION = ("admissionregistration.k8s.io", "v1")
CERTIFICATE_SECRETS = Resource("", "v1", "secrets", "Secret", CertificateSecret)
MUTATING_WEBHOOKS = Resource(
    *_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", WebhookConfiguration, namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    *_ADMISSION,
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    WebhookConfiguration,
    namespaced=False,
)
WEBHOOK_CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
