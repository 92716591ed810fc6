"""Readiness of a new replica: the webhook configurations must trust its certificate before an API server calls it.

After a change of the issuer, replicas with the previous certificate serve until the caBundles contain the new
authority. Therefore, no review fails during the change.
"""

from certs.certificate import Pair, UnreadableError, read_bundle
from muster.api import names
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS, WebhookConfiguration
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.process.tls import Files


class TrustCheck:
    """A readiness check that fails until every caBundle trusts the certificate, and never fails again afterwards.

    Later certificates are issued only after every caBundle trusts their authority (docs/certificates.md).
    """

    def __init__(self, client: Client, files: Files) -> None:
        selector = f"metadata.name={names.WEBHOOKS}"
        self.reflectors: list[Reflector[WebhookConfiguration]] = [
            Reflector(client, kind, field_selector=selector) for kind in WEBHOOK_CONFIGURATIONS
        ]
        self._files = files
        self._trusted = False

    def problem(self) -> str | None:
        """Return the reason why an API server would refuse the certificate; None if every caBundle trusts it."""
        if self._trusted:
            return None
        try:
            shown = Pair.read(self._files.cert.read_bytes(), self._files.key.read_bytes())
        except (OSError, UnreadableError) as error:
            return f"the certificate cannot be read: {error}"
        for kind, reflector in zip(WEBHOOK_CONFIGURATIONS, self.reflectors, strict=True):
            bundles = [
                read_bundle(each.client_config.ca_bundle or b"")
                for found in reflector.store.list()
                for each in found.webhooks or ()
            ]
            if not bundles or not all(map(shown.vouched_by, bundles)):
                return f"the caBundles of the {kind.kind} {names.WEBHOOKS} do not trust the certificate"
        self._trusted = True
        return None
