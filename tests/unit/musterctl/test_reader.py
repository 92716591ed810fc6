"""Reports are about the namespace of the kubeconfig's context, as kubectl's are."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubeconfigs import plain, write

from muster.kube.errors import NotFound
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


def test_a_dump_takes_one_connection_and_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`muster queue top --watch` takes one every few seconds."""
    open_clients = list[SimpleNamespace]()
    most = [0]

    def absent(*_: Any, **__: Any) -> Any:
        raise NotFound("there is none")

    def client(_: Where) -> SimpleNamespace:
        made = SimpleNamespace(get=absent, list=lambda *_, **__: [], server="")
        made.close = lambda: open_clients.remove(made)
        open_clients.append(made)
        most[0] = max(most[0], len(open_clients))
        return made

    monkeypatch.setattr(Where, "client", client)
    ClusterReader(Where())()
    assert (most, open_clients) == ([1], [])
