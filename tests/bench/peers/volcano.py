"""Volcano: its own scheduler and controllers, with the limits of their clients lifted, and as its chart has them.

Its webhooks do not run: Jobs are complete as they are submitted, and its tuning guide counts webhooks among the costs.
Volcano needs a constant of volcano.sh/apis that the published module does not have.
"""

import re
import shutil
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from beside import manifests, programs
from beside.neighbour import Neighbours

from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane import binaries, gobuild, install
from musterctl.plane.health import trouble_at, wait_until
from musterctl.plane.machine import LOOPBACK, free_ports, locked
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess
from tests.bench.peers.muster import submit_jobs
from tests.bench.peers.peer import Peer

_MODULE = "volcano.sh/volcano"
_PROGRAMS = {"vc-controller-manager": f"{_MODULE}/cmd/controller-manager", "vc-scheduler": f"{_MODULE}/cmd/scheduler"}
_DEFINITIONS = ("config/crd/volcano/bases", "config/crd/jobflow/bases")
_CONFIGURATION = Path("installer/helm/chart/volcano/config/volcano-scheduler.conf")
_APIS = "volcano.sh/apis"
_PUBLISHED = re.compile(rf"{_APIS} => {_APIS} v\S+")
_INCOMPLETE = (Path("pkg", "apis", "scheduling"), Path("pkg", "apis", "scheduling", "v1beta1"))
_MISSING = 'const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"'
_READY_S = 120.0
_LIFTED = ("--kube-api-qps=5000", "--kube-api-burst=5000", "-v=0")


class Volcano(Peer):
    """Volcano with these flags."""

    parts = ("etcd", "kube-apiserver")
    own = tuple(_PROGRAMS)
    made = (JOBS, POD_GROUPS)

    def __init__(
        self, name: str, title: str, controllers: tuple[str, ...], scheduler: tuple[str, ...], *, rounds: int = 1_000
    ) -> None:
        self.name = f"volcano.{name}"
        self.title = f"Volcano, {title}"
        self.rounds = rounds
        self._flags = {"vc-controller-manager": controllers, "vc-scheduler": scheduler}

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        flags = "; ".join(f"{name} with `{' '.join(flags)}`" for name, flags in self._flags.items())
        return f"{programs.version('volcano', _MODULE)}, the configuration of its chart, no webhooks; {flags}"

    def build(self) -> None:
        """Build both programs."""
        for program in _PROGRAMS:
            _program(program)

    def prepare(self, plane: Plane, client: Client) -> None:
        """Install Volcano's own CRDs."""
        source = programs.published("volcano", _MODULE)
        install.apply(client, manifests.read(*(source / folder for folder in _DEFINITIONS)))
        plane.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")

    def start(self, plane: Plane) -> Mapping[str, PlaneProcess]:
        """Start scheduler and controllers as the administrator: a certificate costs least."""
        configuration = programs.published("volcano", _MODULE) / _CONFIGURATION
        more = {"vc-scheduler": (f"--scheduler-conf={configuration}",)}
        started, neighbours = dict[str, PlaneProcess](), Neighbours()
        for name, flags in self._flags.items():
            health, metrics = (f"{LOOPBACK}:{port}" for port in free_ports(2))
            common = (
                f"--kubeconfig={plane.kubeconfig}",
                "--leader-elect=false",
                "--enable-healthz=true",
                f"--healthz-address={health}",
                f"--listen-address={metrics}",
            )
            part = neighbours.start(plane, name, _program(name), (*common, *more.get(name, ()), *flags))
            wait_until(part, partial(trouble_at, f"http://{health}/healthz", plane.root), _READY_S)
            started[name] = part
        return started

    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit a Volcano Job per gang."""
        submit_jobs(client, prefix, gangs, members)


def _program(name: str) -> Path:
    """Return the program of this name, built once."""
    return binaries.cached(gobuild.Recipe("volcano", _module(), {name: _PROGRAMS[name]}, minutes=6)) / name


@cache
def _module() -> Path:
    """Return a folder in the user's cache with the module to build, in which volcano.sh/apis is complete."""
    source, folder = programs.folder("volcano"), binaries.user_cache() / "volcano" / "module"
    with locked(folder.with_suffix(".lock")):
        apis = programs.published("volcano", _APIS)
        shutil.copytree(apis, folder / "apis", copy_function=shutil.copyfile, dirs_exist_ok=True)
        for package in _INCOMPLETE:
            (folder / "apis" / package).chmod(0o755)  # folders of Go's cache cannot be written
            (folder / "apis" / package / "missing.go").write_text(f"package {package.name}\n\n{_MISSING}\n")
        text = (source / "go.mod").read_text(encoding="utf-8")
        (folder / "go.mod").write_text(_PUBLISHED.sub(f"{_APIS} => ./apis", text), encoding="utf-8")
        shutil.copyfile(source / "go.sum", folder / "go.sum")
    return folder


def _tuned(workers: int) -> Volcano:
    """Return Volcano without its clients' limits, with this number of workers."""
    threads = (f"--worker-threads={workers}", f"--worker-threads-for-podgroup={workers}")
    return Volcano(f"{workers}-workers", f"limits lifted, {workers} workers", (*_LIFTED, *threads), _LIFTED)


ALL = (
    _tuned(3),
    _tuned(100),
    Volcano(
        "as-shipped",
        "as shipped",
        ("--kube-api-qps=50", "--kube-api-burst=100", "--worker-threads=3", "--worker-threads-for-podgroup=5", "-v=4"),
        ("--kube-api-qps=2000", "--kube-api-burst=2000", "--schedule-period=1s", "--node-worker-threads=20", "-v=3"),
        rounds=1,
    ),
)
"""Two numbers of workers, of which the better one is the peer, and the values of its chart."""
