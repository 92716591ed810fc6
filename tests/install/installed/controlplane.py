"""The control plane of a conformant cluster, as processes: nothing is switched off in it, and pods can reach it.

It lives on a machine of its own in the network of the nodes (`network`), so its ports are the usual ones.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from realnode import dns

from certs.authority import Authority
from installed import network
from musterctl.plane import binaries
from musterctl.plane.pki import ADMIN, SERVICE_ACCOUNTS, Pki
from musterctl.plane.process import PlaneProcess

ADDRESS: Final = network.CONTROL_PLANE
SERVER: Final = f"https://{ADDRESS}:6443"
SERVICES: Final = "10.96.0.0/16"
_API_SERVICE: Final = "10.96.0.1"
"""The first address of the range is that of the API server's own Service."""
DOMAIN: Final = "cluster.local"
GRACE_S: Final = 20
"""How long a node is Ready after its kubelet's last sign of life; kubelets give one every ten seconds."""
TOLERATED_S: Final = 15
"""How long pods stay on a node that is not Ready, unless they say otherwise; kube-apiserver's own default is 300."""
_NAMES: Final = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DOMAIN}"
)  # fmt: skip
_ETCD: Final = "http://127.0.0.1:2379"
_PEER: Final = "http://127.0.0.1:2380"
_CLIENT: Final = "kubelet-client"
_ALONE: Final = ("--leader-elect=false",)
"""There is one of each part: on a busy machine one that elects itself misses a renewal, and ends."""
_PATIENT: Final = ("--leader-elect=true", "--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=80s")
"""The same with an election."""


class ControlPlane:
    """etcd, API server, controller manager, scheduler and DNS in a folder, by name in `parts`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pki = Pki(root)
        commands = {
            "etcd": self._etcd,
            "kube-apiserver": self._api_server,
            "kube-controller-manager": self._controller_manager,
            "kube-scheduler": self._scheduler,
        }
        made = {name: PlaneProcess(name, root, command) for name, command in commands.items()}
        self.parts: Mapping[str, PlaneProcess] = made | {
            "coredns": dns.part(root, ADDRESS, lambda: self.kubeconfig("coredns"))
        }
        self.scheduler_config: Path | None = None
        """What the kube-scheduler reads at its next start in place of its defaults."""

    def prepare(self) -> None:
        """Makes the certificates."""
        self.pki.folder.mkdir(parents=True)
        authority = Authority.create("install")
        authority.save(self.pki.folder)
        ips = ("127.0.0.1", ADDRESS, _API_SERVICE)
        authority.issue("kube-apiserver", dns_names=_NAMES, ips=ips, server=True).save(
            self.pki.folder, "kube-apiserver"
        )
        authority.issue(SERVICE_ACCOUNTS).save(self.pki.folder, SERVICE_ACCOUNTS)
        kubelets = authority.issue("kube-apiserver-kubelet-client", organizations=("system:masters",), client=True)
        kubelets.save(self.pki.folder, _CLIENT)

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """The kubeconfig of a part, or the administrator's."""
        return self.pki.kubeconfig(user, SERVER)

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs kubectl with the administrator's rights; the caller looks at the exit code."""
        command = self.kubectl_command(*arguments)
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def kubectl_command(self, *arguments: str) -> list[str]:
        """The command line of that."""
        return [str(program("kubectl")), f"--kubeconfig={self.kubeconfig()}", *arguments]

    def _etcd(self) -> list[str]:
        return [
            str(program("etcd")),
            "--name=install",
            f"--data-dir={self.root / 'etcd'}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            f"--listen-peer-urls={_PEER}",
            f"--initial-advertise-peer-urls={_PEER}",
            f"--initial-cluster=install={_PEER}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        return [
            str(program("kube-apiserver")),
            f"--etcd-servers={_ETCD}",
            f"--advertise-address={ADDRESS}",
            "--bind-address=0.0.0.0",
            "--secure-port=6443",
            f"--tls-cert-file={self.pki.cert_file('kube-apiserver')}",
            f"--tls-private-key-file={self.pki.key_file('kube-apiserver')}",
            f"--client-ca-file={self.pki.ca_file}",
            f"--requestheader-client-ca-file={self.pki.ca_file}",  # there is no proxy, but schedulers ask for it
            "--requestheader-allowed-names=front-proxy-client",
            f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
            f"--service-account-key-file={self.pki.cert_file(SERVICE_ACCOUNTS)}",
            f"--service-account-signing-key-file={self.pki.key_file(SERVICE_ACCOUNTS)}",
            f"--service-cluster-ip-range={SERVICES}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--kubelet-client-certificate={self.pki.cert_file(_CLIENT)}",
            f"--kubelet-client-key={self.pki.key_file(_CLIENT)}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--default-not-ready-toleration-seconds={TOLERATED_S}",
            f"--default-unreachable-toleration-seconds={TOLERATED_S}",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            str(program("kube-controller-manager")),
            *self._credentials("kube-controller-manager"),
            *_ALONE,
            f"--service-account-private-key-file={self.pki.key_file(SERVICE_ACCOUNTS)}",
            f"--root-ca-file={self.pki.ca_file}",
            f"--cluster-signing-cert-file={self.pki.ca_file}",
            f"--cluster-signing-key-file={self.pki.key_file('ca')}",
            "--use-service-account-credentials=true",
            f"--node-monitor-grace-period={GRACE_S}s",
        ]

    def _scheduler(self) -> list[str]:
        # On the node that tests call a control plane: with scheduler.mode cluster the extender is on its loopback.
        command = [*network.place(1).enter, str(program("kube-scheduler")), *self._credentials("kube-scheduler")]
        if self.scheduler_config is None:
            return [*command, *_ALONE]
        # It elects itself, as that configuration says and as an extender plans for a leader only.
        return [*command, f"--config={self.scheduler_config}", *_PATIENT]

    def _credentials(self, part: str) -> list[str]:
        kubeconfig = self.kubeconfig(part)
        flags = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        return [*(f"--{flag}={kubeconfig}" for flag in flags), "--bind-address=127.0.0.1"]


def program(name: str) -> Path:
    """A program of Kubernetes or etcd, of the version that planes have."""
    return binaries.find_programs((name,))[name]


def version() -> str:
    """The version of Kubernetes, e.g. v1.36.3, as the images of its parts are tagged."""
    said = subprocess.run([program("kube-scheduler"), "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[-1]
