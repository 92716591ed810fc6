"""The cluster's DNS: a CoreDNS outside of pods, which knows the names that headless Services give to pods."""

from musterctl.plane.plane import Plane
from musterctl.plane.process import Part
from realnode import namespaces, programs

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


def part(plane: Plane) -> Part:
    """CoreDNS as one more part of the plane."""

    def command() -> list[str]:
        kubeconfig = plane.commandlines.kubeconfig("coredns")
        corefile = plane.commandlines.write(
            "Corefile", _COREFILE.format(address=namespaces.address(1), kubeconfig=kubeconfig)
        )
        return [str(programs.coredns()), f"-conf={corefile}"]

    return Part("coredns", plane.root, command)
