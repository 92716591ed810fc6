"""Objects of certificates: a Secret with its data, and the caBundles of webhooks."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object


class CertificateSecret(Object):
    """A Secret with its decoded data, which is left out when it is printed."""

    data: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        return f"<Secret {self.metadata.key} {self.metadata.resource_version}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("key", self.metadata.key)]


class WebhookClientConfig(Wire):
    """The authorities that an API server trusts when it calls a webhook."""

    ca_bundle: bytes | None = None
    """PEM."""


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
