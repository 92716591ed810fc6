"""Builds and makes what the tests of the installed chart need, into the user's cache: `make e2e-install`.

Where such a cluster cannot be had, nothing is done: the tests are skipped, and say why.
"""

from installed import controlplane, images, needs
from realnode import programs

from musterctl.plane import binaries


def main() -> None:
    """Makes what is missing; the image is built each time, from what the checkout has now."""
    if needs.lacking():
        return
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
        controlplane.program(name)
    binaries.helm()
    programs.kubelet()
    programs.coredns()
    programs.kube_proxy()
    programs.kube_router()
    images.muster()


if __name__ == "__main__":
    main()
