"""KubeSchedulerConfigurations: of Muster's kube-scheduler and of the cluster's own.

They are files of the chart (`charts/muster/files/kube-scheduler*.yaml`, which say why they are as they are); kubeconfig
and the address of the extender are filled in.

Where the extender's URL is an https one, kube-scheduler shows it a client certificate. It reads that anew for each
connection, but the authorities of the extender's only when it starts.
"""

from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from muster.api.names import EXTENDER_HOST
from musterctl.chart.files import FILES, document

DEFAULT_EXTENDER_PORT: Final = 8090
DEFAULT_TLS_FOLDER: Final = "/etc/muster/extender-tls"
"""The folder of `ExtenderAt` in the chart's kube-scheduler."""


class ExtenderAt(NamedTuple):
    """The address of the extender for kube-scheduler; with an https URL it needs the files and the name, too."""

    url: str = f"http://127.0.0.1:{DEFAULT_EXTENDER_PORT}"
    """By default the port where the extender is when the plane runs no scheduler and nothing else was said."""
    folder: str = DEFAULT_TLS_FOLDER
    """Has kube-scheduler's client certificate (client.crt, client.key), and the extender's authorities (ca.crt)."""
    server_name: str = EXTENDER_HOST
    """A name in the extender's certificate."""


_ON_LOOPBACK: Final = ExtenderAt()


def muster_scheduler(*, kubeconfig: str, extender: ExtenderAt = _ON_LOOPBACK) -> dict[str, Any]:
    """The configuration of the kube-scheduler that serves Muster's pods; an empty kubeconfig means in-cluster."""
    return _filled("kube-scheduler.yaml", kubeconfig, extender)


def shared_scheduler(*, kubeconfig: str, extender: ExtenderAt = _ON_LOOPBACK) -> dict[str, Any]:
    """The configuration of a cluster's own scheduler that asks Muster about marked pods, and about no others."""
    return _filled("kube-scheduler-shared.yaml", kubeconfig, extender)


def default_scheduler(*, kubeconfig: str) -> dict[str, Any]:
    """The configuration of a cluster's own kube-scheduler that knows nothing of Muster, alone on its machine."""
    config = shared_scheduler(kubeconfig=kubeconfig)
    kept = {name: config[name] for name in ("apiVersion", "kind", "clientConnection")}
    return {**kept, "leaderElection": {"leaderElect": False}}


def _filled(file: str, kubeconfig: str, extender: ExtenderAt) -> dict[str, Any]:
    """The configuration in a file of the chart, with its kubeconfig and its extender."""
    config: dict[str, Any] = document(FILES / file)
    config["clientConnection"]["kubeconfig"] = kubeconfig
    for entry in config["extenders"]:
        entry |= {"urlPrefix": extender.url.rstrip("/"), **_tls(extender)}
    return config


def _tls(extender: ExtenderAt) -> dict[str, Any]:
    """The certificates of an entry, as files: kube-scheduler never reads data again that stands in the entry."""
    if not extender.url.startswith("https://"):
        return {}
    folder = PurePosixPath(extender.folder)
    files = {"certFile": "client.crt", "keyFile": "client.key", "caFile": "ca.crt"}
    config = {name: str(folder / file) for name, file in files.items()}
    return {"enableHTTPS": True, "tlsConfig": {"serverName": extender.server_name, **config}}
