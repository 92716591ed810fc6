"""Certificates, keys and kubeconfigs of one plane, all in its folder `pki`, made once per plane."""

import base64
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from certs.authority import Authority, KeyPair
from muster.api.names import EXTENDER_HOST
from musterctl.plane.machine import LOOPBACK

ADMIN = "admin"
SERVICE_ACCOUNTS = "service-accounts"
"""The key pair that signs and checks service-account tokens."""
_MASTERS = "system:masters"
_USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    ADMIN: ("muster-admin", (_MASTERS,)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
}
"""Names and groups of those that are not called after the plane."""
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVICE_IP = "10.0.0.1"  # the first address of the service range: the API server's own service


class Pki:
    """The authority of one plane, and the certificates and kubeconfigs that it has issued to its parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pki"

    @property
    def ca_file(self) -> Path:
        """The certificate of the plane's authority: what every client trusts."""
        return self.folder / "ca.crt"

    def cert_file(self, name: str) -> Path:
        """Where the certificate of a part, or of the service accounts, is or will be."""
        return self.folder / f"{name}.crt"

    def key_file(self, name: str) -> Path:
        """Where its private key is or will be."""
        return self.folder / f"{name}.key"

    def ensure(self) -> None:
        """Makes the authority, the serving certificates and the service-account key unless they exist."""
        if self.cert_file("webhook").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        authority = Authority.create("muster-local")
        authority.save(self.folder)
        self._write(
            "kube-apiserver",
            authority.issue("kube-apiserver", dns_names=_SERVER_NAMES, ips=(LOOPBACK, _SERVICE_IP), server=True),
        )
        self._write(SERVICE_ACCOUNTS, authority.issue("service-accounts"))
        for name in ("kube-controller-manager", "kube-scheduler", "muster-scheduler", "webhook", "controller"):
            self._write(name, authority.issue(name, dns_names=("localhost",), ips=(LOOPBACK,), server=True))

    @property
    def extender_folder(self) -> Path:
        """Where the certificates between kube-scheduler and the extender are or will be, with their authority."""
        return self.folder / "extender"

    def ensure_extender(self) -> None:
        """Makes them unless they exist. Their authority signs nothing else, as whom it has signed for may call."""
        if self.extender_folder.exists():
            return
        authority = Authority.create("muster-local-extender")
        with TemporaryDirectory(dir=self.folder) as made:
            authority.save(Path(made))
            authority.issue(EXTENDER_HOST, dns_names=(EXTENDER_HOST,), server=True).save(Path(made))
            authority.issue("kube-scheduler", client=True).save(Path(made), "client")
            shutil.copytree(made, self.extender_folder)

    def kubeconfig(self, name: str, server: str) -> Path:
        """A kubeconfig with a certificate of that user, made once.

        Parts of Kubernetes are who they are in every cluster, and have the roles that Kubernetes gives them; the
        administrator, and kwok, who plays all kubelets, may do everything.
        """
        path = self.folder.parent / f"{name}.kubeconfig"
        if not path.exists():
            user, organizations = _USERS.get(name, (f"muster-local:{name}", (_MASTERS,)))
            pair = Authority.load(self.folder).issue(user, organizations=organizations, client=True)
            write_private(path, yaml.safe_dump(_kubeconfig(user, server, self.ca_file.read_bytes(), pair)).encode())
        return path

    def _write(self, name: str, pair: KeyPair) -> None:
        """Stores a key and, after it, its certificate."""
        write_private(self.key_file(name), pair.key_pem)
        self.cert_file(name).write_bytes(pair.cert_pem)


def write_private(path: Path, content: bytes) -> None:
    """Writes a file in one step that only its owner may read."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.touch(mode=0o600)
    temporary.write_bytes(content)
    temporary.replace(path)


def _kubeconfig(user: str, server: str, ca: bytes, pair: KeyPair) -> dict[str, object]:
    """A kubeconfig with certificates and key inside, so that it can be copied anywhere."""
    encoded = {
        "certificate-authority-data": ca,
        "client-certificate-data": pair.cert_pem,
        "client-key-data": pair.key_pem,
    }
    data = {key: base64.b64encode(value).decode() for key, value in encoded.items()}
    cluster = {"server": server, "certificate-authority-data": data.pop("certificate-authority-data")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "muster", "cluster": cluster}],
        "users": [{"name": user, "user": data}],
        "contexts": [{"name": "muster", "context": {"cluster": "muster", "user": user}}],
        "current-context": "muster",
    }
