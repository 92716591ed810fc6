"""Reports are about the namespace of the kubeconfig's context, as kubectl's are."""

from pathlib import Path

import yaml

from musterctl.cluster import Where
from musterctl.reader import Reader


def kubeconfig(folder: Path) -> Path:
    """A kubeconfig whose context names a namespace."""
    context = {"cluster": "one", "user": "me", "namespace": "research"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": context}],
        "clusters": [{"name": "one", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


def test_the_namespace_of_the_context_counts(tmp_path: Path) -> None:
    """Unless one is given; a snapshot has no context."""
    where = Where(kubeconfig(tmp_path))
    assert Reader(where).namespace(None) == "research"
    assert Reader(where).namespace("other") == "other"
    assert Reader(where, snapshot=tmp_path / "snapshot").namespace(None) == "default"
