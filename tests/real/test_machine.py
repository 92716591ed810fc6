"""What nodes do to the machine that they run on."""

import pytest
from realnode import namespaces
from realnode.cluster import Cluster

pytestmark = pytest.mark.real


def test_the_kernel_keeps_its_settings(cluster: Cluster) -> None:
    """Both kubelets have set how the kernel panics and gives memory: it was never told, so a kill leaves nothing."""
    assert namespaces.kernel_settings()["kernel/panic"] == "10", "kubelet sees what it wrote"
    assert cluster.settings_now == cluster.settings_before
