"""Muster's release in the cluster: installed, changed and removed as docs/install.md says."""

import ssl
import subprocess
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from installed import images
from installed.cluster import Cluster
from muster.api.names import CERTIFICATES, SYSTEM_NAMESPACE
from musterctl.app import main
from musterctl.kind import image as checkout
from musterctl.plane import binaries

CHART: Final = (
    next(images.RELEASE.glob("muster-chart-*.tgz")) if images.RELEASE else checkout.ROOT / "charts" / "muster"
)
NAME: Final = "muster"
IMAGE: Final = ((
    "image.registry=localhost", "image.repository=muster", f"image.tag={images.MUSTER.partition(':')[2]}",
) if not images.RELEASE else ())  # fmt: skip
"""Values of the image; the chart of a release has its own."""
_READY_S: Final = 120.0
_GONE_S: Final = 150.0
"""A replica of the webhook ends once API servers have closed their connections, within 95 s."""
_ROTATED_S: Final = 240.0
"""Half a minute until all API servers trust the new authority, and up to two until kubelets bring new files."""
Pod = dict[str, Any]
_NO_FILES: Final[Mapping[str, Path]] = {}


class ChartError(Exception):
    """helm did not do what it was asked for; the message has its own words."""


class Release:
    """The release `muster` in namespace `muster-system`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._helm = binaries.helm()

    def install(self, *settings: str, level: str = "restricted", files: Mapping[str, Path] = _NO_FILES) -> float:
        """Installs the chart into a namespace that enforces that Pod Security level; the time it took, in seconds.

        `files` are values that are read from files.
        """
        kubectl = self._cluster.plane.kubectl
        kubectl("create", "namespace", SYSTEM_NAMESPACE)
        kubectl("label", "namespace", SYSTEM_NAMESPACE, f"pod-security.kubernetes.io/enforce={level}", "--overwrite")
        start = time.monotonic()
        more = [f"--set-file={value}={file}" for value, file in files.items()]
        self.helm("install", NAME, str(CHART), *sets(IMAGE), *sets(settings), *more)
        self.wait_ready()
        return time.monotonic() - start

    def apply(self, manifests: str) -> None:
        """Applies what `muster render` printed, also over what helm has installed; returns when all is ready."""
        done = self._cluster.plane.kubectl("apply", "--server-side", "--filename=-", stdin=manifests)
        if done.returncode:
            raise ChartError(f"kubectl apply: {done.stderr.strip()}")
        self.wait_ready()

    def delete(self, manifests: str) -> None:
        """Deletes the same again, and waits until none of its pods is left."""
        done = self._cluster.plane.kubectl("delete", "--ignore-not-found", "--filename=-", stdin=manifests)
        if done.returncode:
            raise ChartError(f"kubectl delete: {done.stderr.strip()}")
        self._cluster.wait("Muster's pods are gone", lambda: not self.pods(), _GONE_S)

    def upgrade(self, *settings: str) -> float:
        """Changes values of the release; the time until all pods were new and ready, in seconds."""
        start = time.monotonic()
        self.helm("upgrade", NAME, str(CHART), "--reuse-values", *sets(settings))
        self.wait_ready()
        return time.monotonic() - start

    def uninstall(self) -> None:
        """Removes the release, and waits until none of its pods is left."""
        self.helm("uninstall", NAME)
        self._cluster.wait("Muster's pods are gone", lambda: not self.pods(), _GONE_S)

    def remove(self) -> None:
        """Removes the release, if there is one, and its namespace with all that is left in it."""
        self.helm("uninstall", NAME, "--ignore-not-found")
        self._cluster.plane.kubectl("delete", "pods", "--all", f"--namespace={SYSTEM_NAMESPACE}", "--grace-period=1")
        self._cluster.plane.kubectl("delete", "namespace", SYSTEM_NAMESPACE, "--ignore-not-found")

    def test(self) -> str:
        """What `helm test` says."""
        return self.helm("test", NAME)

    def pods(self, part: str = "") -> list[Pod]:
        """The pods of the release, or of a part of it, by name; without those that `helm test` ran."""
        wanted = "app.kubernetes.io/component" + (f"={part}" if part else " in (webhook,scheduler,controller,extender)")
        found = self._cluster.objects("pods", SYSTEM_NAMESPACE, f"--selector={wanted}")
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def wait_ready(self) -> None:
        """Returns when every Deployment is rolled out: the pods are those of now, and all are ready."""
        self._cluster.wait("all of Muster is ready", self._rolled_out, _READY_S)

    def leader(self, lease: str) -> Pod:
        """The pod that holds a Lease."""
        found = self._cluster.objects("leases", SYSTEM_NAMESPACE)
        holder = next(each["spec"]["holderIdentity"] for each in found if each["metadata"]["name"] == lease)
        return next(pod for pod in self.pods() if str(holder).startswith(pod["metadata"]["name"]))

    def served_by(self) -> set[str]:
        """The nodes of the replicas to which the webhook's Service leads now."""
        slices = self._cluster.objects("endpointslices", SYSTEM_NAMESPACE)
        mine = (each for each in slices if each["metadata"]["labels"]["kubernetes.io/service-name"] == "muster-webhook")
        ends = (end for each in mine for end in each.get("endpoints") or ())
        return {end["nodeName"] for end in ends if end["conditions"].get("ready")}

    def kill(self, pod: Pod, container: str) -> float:
        """Ends a container by SIGKILL, past kubelet; the time until the pod was ready again, in seconds."""
        name, before = pod["metadata"]["name"], _status(pod, container)
        start = time.monotonic()
        self._cluster.node(pod["spec"]["nodeName"]).kill(before["containerID"])

        def back() -> bool:
            now = next((_status(each, container) for each in self.pods() if each["metadata"]["name"] == name), before)
            return bool(now["restartCount"] > before["restartCount"] and now["ready"])

        self._cluster.wait(f"{name}/{container} is ready again", back, _READY_S)
        return time.monotonic() - start

    def replace(self, part: str) -> None:
        """Deletes the pods of a part; returns when there are new ones, all ready."""
        names = [f"pod/{pod['metadata']['name']}" for pod in self.pods(part)]
        self._cluster.plane.kubectl("delete", f"--namespace={SYSTEM_NAMESPACE}", *names)
        self.wait_ready()

    def rotate(self) -> None:
        """`muster certs rotate`; returns when every replica of the webhook shows a certificate of the new authority."""
        before = self._secret()
        done = CliRunner().invoke(main, ["certs", "rotate", f"--kubeconfig={self._cluster.plane.kubeconfig()}"])
        if done.exit_code:
            raise ChartError(f"muster certs rotate: {done.output}")

        def shown() -> bool:
            secret = self._secret()
            issued = secret["issuer.crt"] != before["issuer.crt"] and secret["tls.crt"] != before["tls.crt"]
            return issued and {_shown(pod) for pod in self.pods("webhook")} == {secret["tls.crt"].strip()}

        self._cluster.wait("the webhook shows its new certificate", shown, _ROTATED_S)

    def trust(self) -> ssl.SSLContext:
        """What trusts the authority of Muster's certificates, whatever address is asked."""
        context = ssl.create_default_context(cadata=self._secret()["ca.crt"])
        context.check_hostname = False
        return context

    def _secret(self) -> dict[str, str]:
        """What Muster's Secret holds, decoded."""
        (found,) = self._cluster.objects("secrets", SYSTEM_NAMESPACE, f"--field-selector=metadata.name={CERTIFICATES}")
        return {name: b64decode(value).decode() for name, value in found["data"].items()}

    def logs(self) -> dict[str, list[str]]:
        """The lines that each container of each pod has written so far, by `pod/container`."""
        found = {}
        for pod in self.pods():
            for container in pod["spec"]["containers"]:
                name = pod["metadata"]["name"]
                where = (f"--namespace={SYSTEM_NAMESPACE}", name, f"--container={container['name']}")
                found[f"{name}/{container['name']}"] = self._cluster.plane.kubectl("logs", *where).stdout.splitlines()
        return found

    def helm(self, *arguments: str) -> str:
        """Runs helm on the release's namespace; its output."""
        kubeconfig = self._cluster.plane.kubeconfig()
        command = [self._helm, f"--kubeconfig={kubeconfig}", f"--namespace={SYSTEM_NAMESPACE}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ChartError(f"helm {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _rolled_out(self) -> bool:
        found = self._cluster.objects("deployments,daemonsets", SYSTEM_NAMESPACE)
        return bool(found) and all(_current(each) for each in found)


def _shown(pod: Pod) -> str:
    """The certificate that a replica of the webhook shows, as PEM."""
    (port,) = (each["containerPort"] for each in pod["spec"]["containers"][0]["ports"] if each["name"] == "https")
    return ssl.get_server_certificate((pod["status"]["podIP"], port), timeout=5).strip()


def _current(each: dict[str, Any]) -> bool:
    """Whether a Deployment or DaemonSet has all its pods in their newest form, all of them ready, and no others."""
    status = each["status"]
    if status.get("observedGeneration") != each["metadata"]["generation"]:
        return False
    if each["kind"] == "DaemonSet":
        return 0 < status["desiredNumberScheduled"] == status["numberReady"] == status["updatedNumberScheduled"]
    counts = {status.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas")}
    return counts == {each["spec"]["replicas"]}


def _status(pod: Pod, container: str) -> dict[str, Any]:
    status: dict[str, Any] = next(each for each in pod["status"]["containerStatuses"] if each["name"] == container)
    return status


def sets(settings: Sequence[str]) -> list[str]:
    """Settings as helm and `muster render` take them."""
    return [f"--set={each}" for each in settings]
