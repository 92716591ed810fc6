"""Certificates, keys and kubeconfigs of a local control plane, created once in its folder `pki`.

Two more files make a kube-apiserver present a client certificate to webhooks (docs/install.md).
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from certs.authority import Authority
from muster.api.names import EXTENDER_HOST
from musterctl.plane.machine import LOOPBACK, write_private

ADMIN: Final = "admin"
SERVICE_ACCOUNTS: Final = "service-accounts"
"""The key pair that signs and checks service-account tokens."""
_MASTERS: Final = "system:masters"
_USERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    ADMIN: ("muster-admin", (_MASTERS,)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
}
"""Names and groups of the users that Kubernetes itself defines for its clients."""
_SERVER_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVICE_IP: Final = "10.0.0.1"  # the first address of the service range: the API server's own service
_ADMISSION_PLUGINS: Final = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")


class Pki:
    """The certificate authority of a local control plane, and the certificates and kubeconfigs of its components."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pki"
        self.extender_folder = self.folder / "extender"
        """Folder with the certificates of the extender and of its client kube-scheduler, and with their authority."""
        self.webhook_folder = self.folder / "webhook-clients"
        """Folder with the certificate that the API server presents to the webhook, and with the certificate's
        authority."""

    @property
    def ca_file(self) -> Path:
        """Return the path of the authority's certificate, which all clients of the control plane trust."""
        return self.folder / "ca.crt"

    def cert_file(self, name: str) -> Path:
        """Return the path of the certificate of a component, or of the public key for service-account tokens."""
        return self.folder / f"{name}.crt"

    def key_file(self, name: str) -> Path:
        """Return the path of the private key of a component."""
        return self.folder / f"{name}.key"

    def ensure(self, *, extender_tls: bool = False) -> None:
        """Create the authority, the serving certificates and the service-account key, unless the files exist."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (self.webhook_folder / "client.crt").exists():
            self._issue_webhook_client()
        if self.cert_file("controller").exists():
            return
        authority = Authority.create("muster-local")
        authority.save(self.folder)
        api_server = authority.issue(
            "kube-apiserver", dns_names=_SERVER_NAMES, ips=(LOOPBACK, _SERVICE_IP), server=True
        )
        api_server.save(self.folder, "kube-apiserver")
        authority.issue(SERVICE_ACCOUNTS).save(self.folder, SERVICE_ACCOUNTS)
        if extender_tls:
            self._issue_extender()
        for name in ("kube-controller-manager", "kube-scheduler", "muster-scheduler", "webhook", "controller"):
            pair = authority.issue(name, dns_names=("localhost",), ips=(LOOPBACK,), server=True)
            pair.save(self.folder, name)

    def _issue_extender(self) -> None:
        """Issue the certificates of the extender and of its client kube-scheduler, by a separate authority.

        The extender accepts every client with a certificate of this authority.
        """
        authority = Authority.create("muster-local-extender")
        authority.save(self.extender_folder)
        authority.issue(EXTENDER_HOST, dns_names=(EXTENDER_HOST,), server=True).save(self.extender_folder)
        authority.issue("kube-scheduler", client=True).save(self.extender_folder, "client")

    def _issue_webhook_client(self) -> None:
        """Issue the certificate with which the API server calls the webhook, by a separate authority.

        The webhook accepts reviews from every client with a certificate of this authority.
        """
        authority = Authority.create("muster-local-webhook-clients")
        authority.save(self.webhook_folder)
        authority.issue("kube-apiserver", client=True).save(self.webhook_folder, "client")

    def kubeconfig(self, name: str, server: str) -> Path:
        """Return a kubeconfig with a certificate for this user: one of Kubernetes' own users, or an administrator."""
        path = self.folder.parent / f"{name}.kubeconfig"
        if not path.exists():
            user, organizations = _USERS.get(name, (f"muster-local:{name}", (_MASTERS,)))
            pair = Authority.load(self.folder).issue(user, organizations=organizations, client=True)
            cluster = {"server": server, "certificate-authority-data": _encoded(self.ca_file.read_bytes())}
            credentials = {
                "client-certificate-data": _encoded(pair.cert_pem),
                "client-key-data": _encoded(pair.key_pem),
            }
            write_kubeconfig(path, cluster, user, credentials)
        return path


def write_kubeconfig(path: Path, cluster: Mapping[str, str], user: str, credentials: Mapping[str, str]) -> None:
    """Write a kubeconfig for one cluster and one user."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "muster", "cluster": {**cluster}}],
        "users": [{"name": user, "user": {**credentials}}],
        "contexts": [{"name": "muster", "context": {"cluster": "muster", "user": user}}],
        "current-context": "muster",
    }
    write_private(path, yaml.safe_dump(content).encode())


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def admission_control(kubeconfig: Path) -> dict[str, Any]:
    """Return the content of `--admission-control-config-file`, which configures the calls of both kinds of webhooks."""
    group = "apiserver.config.k8s.io/v1"
    webhooks = {"apiVersion": group, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}
    plugins = [{"name": name, "configuration": webhooks} for name in _ADMISSION_PLUGINS]
    return {"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins}


def webhook_callers(cert: Path, key: Path, host: str = "*") -> dict[str, Any]:
    """Return a kubeconfig with this certificate for the user `host`: the host of webhooks, or `*` for any host."""
    user = {"client-certificate": str(cert), "client-key": str(key)}
    return {"apiVersion": "v1", "kind": "Config", "users": [{"name": host, "user": user}]}
