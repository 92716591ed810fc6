"""A kind cluster with Muster, which `muster up --provider kind` creates and `muster down` removes.

The cluster's folder is next to the folders of local control planes; the file `kind.json` marks it as the folder of a
kind cluster. All steps can be repeated: for an existing cluster, `up` builds and loads the image again, and applies the
chart again.
"""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from muster.api.names import SYSTEM_NAMESPACE
from musterctl.chart.files import render
from musterctl.kind import image as images
from musterctl.kind.image import PROVIDER_VARIABLE, Engine, find_engine, required, run
from musterctl.plane import binaries, state
from musterctl.plane.install import BLOCK, RACK, run_of
from musterctl.plane.machine import LocalError

_FULL_VERSION: Final = 3
"""Number of parts of a full version, such as 1.34.2."""
WHERE_KIND_IS: Final = (
    "https://kind.sigs.k8s.io/docs/user/quick-start/#installation describes the installation, "
    "or `go install sigs.k8s.io/kind@latest`"
)
DEPLOYMENTS: Final = ("muster-webhook", "muster-scheduler", "muster-controller")
_FILE: Final = "kind.json"
_PREFIX: Final = "muster-"
_WAIT: Final = "300s"
Report = Callable[[str], None]


class KindOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a kind cluster."""

    nodes: int = 3
    """Number of worker nodes, in addition to the node of the control plane."""
    racks: int = 1
    blocks: int = 1
    kubernetes: str = ""
    """A full Kubernetes version; empty means kind's default."""


def configuration(wish: KindOptions) -> dict[str, Any]:
    """Return the content of the file for `kind create cluster --config`."""
    image = {"image": node_image(wish.kubernetes)} if wish.kubernetes else {}
    workers = [
        {
            "role": "worker",
            **image,
            "labels": {
                RACK: f"rack-{run_of(index, wish.nodes, wish.racks)}",
                BLOCK: f"block-{run_of(index, wish.nodes, wish.blocks)}",
            },
        }
        for index in range(wish.nodes)
    ]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": "control-plane", **image}, *workers],
    }


def node_image(version: str) -> str:
    """Return the image that kind publishes for nodes with this Kubernetes version."""
    numbers = version.removeprefix("v").split(".")
    if len(numbers) != _FULL_VERSION or not all(number.isdigit() for number in numbers):
        raise LocalError(
            f"--kubernetes {version}: kind's node images have full versions, such as 1.34.0; "
            "the release notes of kind list the available images"
        )
    return f"kindest/node:v{'.'.join(numbers)}"


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The content of kind.json."""

    wish: KindOptions
    engine: str


@dataclass(frozen=True, slots=True)
class KindCluster:
    """A kind cluster, identified by its name; it may not exist yet."""

    name: str

    @property
    def root(self) -> Path:
        """The folder of the cluster."""
        return state.folder_of(self.name)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "admin.kubeconfig"

    @property
    def called(self) -> str:
        """The name of the cluster in kind."""
        return _PREFIX + self.name

    def made(self) -> Made | None:
        """The options with which the cluster was created; None if the cluster does not exist."""
        try:
            return msgspec.json.decode((self.root / _FILE).read_bytes(), type=Made)
        except FileNotFoundError:
            return None

    def kubectl_program(self) -> Path:
        """Return the path of kubectl: on the PATH, or else the kubectl that was built for local control planes."""
        return binaries.find_programs(("kubectl",))["kubectl"]

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl with the administrator's rights, and return its output."""
        return run([str(self.kubectl_program()), f"--kubeconfig={self.kubeconfig}", *arguments], stdin=stdin)

    def up(self, chosen: Mapping[str, Any], *, image: str = "", report: Report = lambda _: None) -> None:
        """Create the cluster with the `chosen` options unless it exists; install Muster from `image` or a new image."""
        wish = self._wish(chosen)
        config = configuration(wish)
        kind = required("kind", WHERE_KIND_IS)
        engine = find_engine()
        report("kubectl and helm")
        self.kubectl_program()
        binaries.helm()
        report("the image")
        reference = self._image(engine, image)
        report("the cluster")
        self._create(kind, engine, config, Made(wish=wish, engine=engine.name))
        report("the nodes to load the image")
        self._load(kind, engine, reference)
        report("the chart")
        self._install(reference)
        for deployment in DEPLOYMENTS:
            report(deployment)
            self.kubectl(
                "rollout", "status", f"--namespace={SYSTEM_NAMESPACE}", f"--timeout={_WAIT}", f"deployment/{deployment}"
            )

    def _wish(self, chosen: Mapping[str, Any]) -> KindOptions:
        """Return the stored options of an existing cluster, or the `chosen` options of a new cluster.

        Raise LocalError if an existing cluster was created with other options.
        """
        found = self.made()
        if found is None:
            return KindOptions(**chosen)
        different = [name for name, value in chosen.items() if getattr(found.wish, name) != value]
        if different:
            had = ", ".join(f"{name} {getattr(found.wish, name) or 'unset'}" for name in different)
            raise LocalError(f"kind cluster {self.name} exists with {had}; `muster down --name {self.name}` ends it")
        return found.wish

    def remove(self, report: Report = lambda _: None) -> None:
        """Delete the cluster and its folder."""
        made = self.made()
        kind = required("kind", WHERE_KIND_IS)
        report(f"deleting the kind cluster {self.called}")
        environment = {PROVIDER_VARIABLE: made.engine} if made else {}
        command = [str(kind), "delete", "cluster", f"--name={self.called}", f"--kubeconfig={self.kubeconfig}"]
        run(command, environment=environment)
        shutil.rmtree(self.root)

    def _image(self, engine: Engine, image: str) -> str:
        if not image:
            return images.build(engine)
        with contextlib.suppress(LocalError):  # it is not on this machine yet
            engine("image", "inspect", image)
            return image
        engine("pull", image)
        return image

    def _create(self, kind: Path, engine: Engine, config: dict[str, Any], made: Made) -> None:
        """Create the cluster with kind unless the cluster exists."""
        if self.called in run([str(kind), "get", "clusters"], environment=engine.environment).split():
            return
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self.root / "kind.yaml"
        file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        (self.root / _FILE).write_bytes(msgspec.json.encode(made))
        names = [f"--name={self.called}", f"--kubeconfig={self.kubeconfig}"]
        run(
            [str(kind), "create", "cluster", *names, f"--config={file}", f"--wait={_WAIT}"],
            environment=engine.environment,
        )

    def _load(self, kind: Path, engine: Engine, reference: str) -> None:
        """Load the image into the nodes, as an archive, which kind accepts from every container engine."""
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "image.tar"
            engine("save", f"--output={archive}", reference)
            run(
                [str(kind), "load", "image-archive", str(archive), f"--name={self.called}"],
                environment=engine.environment,
            )

    def _install(self, reference: str) -> None:
        """Apply the chart for this cluster's version, with this image."""
        version = json.loads(self.kubectl("version", "--output=json"))["serverVersion"]["gitVersion"]
        manifests = render(arguments=[*image_values(reference), f"--kube-version={version}"])
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=manifests)


def image_values(reference: str) -> list[str]:
    """Return the helm arguments for an image that is loaded into the nodes and must not be pulled."""
    name, _, tag = reference.rpartition(":")
    if not name or "/" in tag or "@" in reference:
        raise LocalError(
            f"--image {reference}: an image to load into the cluster needs a tag, such as {images.REPOSITORY}:1"
        )
    registry, slash, repository = name.partition("/")
    if not slash or not ({".", ":"} & set(registry) or registry == "localhost"):
        registry, repository = "", name
    values = {"image.registry": registry, "image.repository": repository, "image.tag": tag, "image.digest": ""}
    return [f"--set-string={path}={value}" for path, value in values.items()] + ["--set=image.pullPolicy=Never"]


def names() -> list[str]:
    """Return the names of all kind clusters that `muster up` has created."""
    return sorted(path.parent.name for path in state.home().glob(f"*/{_FILE}"))
