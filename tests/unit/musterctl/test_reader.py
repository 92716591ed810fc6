"""Reports are about the namespace of the kubeconfig's context, as kubectl's are."""

from pathlib import Path

from kubeconfigs import plain, write

from musterctl.cluster import Where
from musterctl.reader import ClusterReader


def test_the_namespace_of_the_context_counts(tmp_path: Path) -> None:
    """Unless one is given; a snapshot has no context."""
    content = plain({"server": "http://127.0.0.1:1"}, {"token": "t"})
    content["contexts"][0]["context"]["namespace"] = "research"
    where = Where(Path(write(tmp_path / "kubeconfig", content)))
    assert ClusterReader(where).namespace(None) == "research"
    assert ClusterReader(where).namespace("other") == "other"
    assert ClusterReader(where, snapshot=tmp_path / "snapshot").namespace(None) == "default"
