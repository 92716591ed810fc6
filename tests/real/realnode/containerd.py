"""How the containerd of one node is configured, and its part of the pods' network."""

import json
from pathlib import Path

from realnode import namespaces, rights
from realnode.namespaces import Place


def configure(folder: Path, state: Path, node: int, place: Place, sandbox_image: str) -> Path:
    """Writes the configuration into the folder; what lives no longer than the node goes into `state`."""
    network = folder / "cni"
    network.mkdir(exist_ok=True)
    (network / "10-pods.conflist").write_text(_network(folder, node, place))
    file = folder / "containerd.toml"
    file.write_text(_configuration(folder, state, network, sandbox_image))
    return file


def socket(state: Path) -> Path:
    """Where containerd listens."""
    return state / "containerd.sock"


def _configuration(folder: Path, state: Path, network: Path, sandbox_image: str) -> str:
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE nobody may lower the score, and no sandbox would start.
    return f"""\
version = 2
root = "{folder / "containerd"}"
state = "{state / "containerd"}"
[grpc]
  address = "{socket(state)}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder / "opt"}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox_image}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = "{state / "runc"}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{rights.cni_folder()}"
    conf_dir = "{network}"
"""


def _network(folder: Path, node: int, place: Place) -> str:
    """The node's bridge, which may be that of all nodes; each node gives out its own range."""
    first, last = namespaces.pod_range(node)
    ranges = [[{"subnet": place.subnet, "rangeStart": first, "rangeEnd": last, "gateway": place.gateway}]]
    data_dir = str(folder / "addresses")
    addresses = {"type": "host-local", "dataDir": data_dir, "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": namespaces.BRIDGE, "isGateway": False, "ipMasq": False, "ipam": addresses}
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]})
