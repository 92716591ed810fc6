"""Access to the chart's files: manifests that `muster up` also installs, kube-scheduler's configurations, and helm.

If the extender's URL is an https URL, kube-scheduler presents a client certificate. The certificate is read again for
each connection, but the extender's authorities are read only when kube-scheduler starts.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import yaml

from muster.api.muster.pools import DEFAULT_POOL, lease_of, scheduler_of_pool
from muster.api.names import EXTENDER_HOST, NODE_POOL, SYSTEM_NAMESPACE
from muster.chart import CHART
from musterctl.plane import binaries
from musterctl.plane.machine import LocalError

FILES: Final = CHART / "files"
CRDS: Final = FILES / "crds"
RUNTIMES: Final = CHART / "runtimes"
RELEASE: Final = "muster"
RESTRICTED: Final = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
"""Labels of a namespace that admits only pods of the Pod Security Standard "restricted"."""
DEFAULT_EXTENDER_PORT: Final = 8090
DEFAULT_TLS_FOLDER: Final = "/etc/muster/extender-tls"
"""Folder in the container of the chart's kube-scheduler with the certificates for https calls to the extender
(`ExtenderAt.folder`)."""


def document(path: Path) -> Any:
    """Return the content of a file with exactly one YAML document."""
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


def manifests(path: Path, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return the manifests in a file; `names` replaces placeholders such as `<namespace>`, as in `_helpers.tpl`."""
    text = path.read_text(encoding="utf-8")
    for mark, name in (names or {}).items():
        text = text.replace(mark, name)
    return list(yaml.load_all(text, yaml.CSafeLoader))


def policies() -> list[dict[str, Any]]:
    """Return the admission policies, which contain rules that RBAC cannot express, and their bindings."""
    return [each for path in sorted((FILES / "policies").glob("*.yaml")) for each in manifests(path)]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm, and return the result; the caller must check the exit code."""
    command = [str(binaries.helm()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a list, and no shell


def render(*, namespace: str = SYSTEM_NAMESPACE, values: Sequence[Path] = (), arguments: Sequence[str] = ()) -> str:
    """Return the manifests that `helm install` creates, without the chart's tests.

    `arguments` are passed to helm (`--set a=b`). Raise LocalError if helm fails.
    """
    files = [f"--values={path}" for path in values]
    command = ["template", RELEASE, str(CHART), f"--namespace={namespace}", "--skip-tests", *files, *arguments]
    result = helm(*command)
    if result.returncode:
        raise LocalError(f"the chart cannot be rendered: {result.stderr.strip()}")
    own = {"apiVersion": "v1", "kind": "Namespace", "metadata": _metadata(namespace, result.stdout)}
    return f"---\n{yaml.safe_dump(own, sort_keys=False)}{result.stdout}"


def _metadata(namespace: str, manifests: str) -> dict[str, Any]:
    """Return the metadata of a namespace; it enforces `restricted`, unless pods need the node's network."""
    return {"name": namespace} | ({} if "hostNetwork: true" in manifests else {"labels": RESTRICTED})


class ExtenderAt(NamedTuple):
    """The address at which kube-scheduler calls the extender.

    An https URL also needs the certificate files and the server name.
    """

    url: str = f"http://127.0.0.1:{DEFAULT_EXTENDER_PORT}"
    """The URL of the extender; by default its port on a local control plane without Muster's kube-scheduler."""
    folder: str = DEFAULT_TLS_FOLDER
    """Folder with kube-scheduler's client certificate (client.crt, client.key) and the extender's CA (ca.crt)."""
    server_name: str = EXTENDER_HOST
    """The host name in the extender's certificate."""


_ON_LOOPBACK: Final = ExtenderAt()


def kube_scheduler(
    *, kubeconfig: str, extender: ExtenderAt = _ON_LOOPBACK, shared: bool = False, pool: str = DEFAULT_POOL
) -> dict[str, Any]:
    """Return the configuration of a node pool's kube-scheduler; an empty kubeconfig means in-cluster.

    With `shared`, return the configuration of the cluster's own scheduler, which calls Muster only for marked pods.
    """
    config: dict[str, Any] = document(FILES / f"kube-scheduler{'-shared' if shared else ''}.yaml")
    config["clientConnection"]["kubeconfig"] = kubeconfig
    for entry in config["extenders"]:
        entry |= {"urlPrefix": extender.url.rstrip("/"), **_tls(extender)}
    return _of_pool(config, pool) if pool else config


def _of_pool(config: dict[str, Any], pool: str) -> dict[str, Any]:
    """Return the configuration of kube-scheduler for a node pool.

    The configuration has a single profile, for the nodes with the pool's label, and its own Lease.
    """
    profile = config["profiles"][0] | {"schedulerName": scheduler_of_pool(pool)}
    for each in profile["pluginConfig"]:
        required = each["args"]["addedAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for term in required["nodeSelectorTerms"]:
            term["matchExpressions"] = [{"key": NODE_POOL, "operator": "In", "values": [pool]}]
    lease = config["leaderElection"] | {"resourceName": lease_of(pool)}
    return config | {"profiles": [profile], "leaderElection": lease}


def default_scheduler(*, kubeconfig: str) -> dict[str, Any]:
    """Return the configuration of a cluster's own kube-scheduler without Muster and without leader election."""
    config = kube_scheduler(kubeconfig=kubeconfig, shared=True)
    kept = {name: config[name] for name in ("apiVersion", "kind", "clientConnection")}
    return {**kept, "leaderElection": {"leaderElect": False}}


def _tls(extender: ExtenderAt) -> dict[str, Any]:
    """Return the TLS settings for the extender in kube-scheduler's configuration.

    Certificates are given as paths, because kube-scheduler never reloads inline certificates.
    """
    if not extender.url.startswith("https://"):
        return {}
    folder = PurePosixPath(extender.folder)
    files = {"certFile": "client.crt", "keyFile": "client.key", "caFile": "ca.crt"}
    config = {name: str(folder / file) for name, file in files.items()}
    return {"enableHTTPS": True, "tlsConfig": {"serverName": extender.server_name, **config}}
