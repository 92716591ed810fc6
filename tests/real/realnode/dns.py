"""The cluster's DNS: a CoreDNS outside of pods, which knows the names of Services and of the pods behind them."""

from collections.abc import Callable
from pathlib import Path

from musterctl.plane.process import PlaneProcess
from realnode import programs

_COREFILE = """\
.:53 {{
  bind {address}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig} muster
    pods verified
    ttl 0
  }}
}}
"""


def part(root: Path, address: str, kubeconfig: Callable[[], Path]) -> PlaneProcess:
    """CoreDNS as one more part of the control plane in that folder, which listens at that address."""

    def command() -> list[str]:
        corefile = root / "Corefile"
        corefile.write_text(_COREFILE.format(address=address, kubeconfig=kubeconfig()), encoding="utf-8")
        return [str(programs.coredns()), f"-conf={corefile}"]

    return PlaneProcess("coredns", root, command)
