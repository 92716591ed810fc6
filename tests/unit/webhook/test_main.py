"""The process: what it serves with, and why it may not start."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubeconfigs import plain, write

from muster.process.settings import API_VERSION
from muster.process.tls import FileError, Files
from webhook import main
from webhook.senders import Senders
from webhook.settings import WebhookSettings


class Started:
    """What the process was started with, and with which look-ups; nothing is served."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.served: dict[str, Any] = {}
        self.native: bool | None = None
        self.failure: Exception | None = None
        lookups = main.ClusterLookups

        def serve(app: Any, **options: Any) -> None:
            self.served = {"app": app, **options}
            if self.failure:
                raise self.failure

        def look_up(client: Any, *, native: bool) -> Any:
            self.native = native
            return lookups(client, native=native)

        monkeypatch.setattr(main.logs, "configure", lambda *_: None)
        monkeypatch.setattr(main, "serve", serve)
        monkeypatch.setattr(main, "ClusterLookups", look_up)

    def main(self, **settings: Any) -> int:
        """The exit code with these settings."""
        file = self.folder / "settings.yaml"
        file.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": WebhookSettings.KIND, **settings}))
        cluster = write(self.folder / "kubeconfig", plain({"server": "http://127.0.0.1:1"}, {}))
        return main.main(["--kubeconfig", cluster, "--settings", str(file), "--host", "::1"])


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    """A process that has not begun."""
    return Started(tmp_path, monkeypatch)


def certified(process: Started) -> bool:
    """Have the senders on a route shown certificates?"""
    found: Senders = process.served["app"].view_functions["/validate/job"].__self__._senders
    return found.certified


def test_what_is_served(process: Started) -> None:
    """All senders are answered, and none is known."""
    process.main(port=1234, certFile="/a/crt", keyFile="/a/key")
    served = process.served
    assert (served["host"], served["port"], served["name"]) == ("::1", 1234, "muster-webhook")
    assert served["files"] == Files(Path("/a/crt"), Path("/a/key"), None)
    assert not certified(process)
    assert process.native is True


def test_known_senders(process: Started) -> None:
    """A client certificate is requested."""
    process.main(clientCaFile="/a/ca")
    assert process.served["files"].client_ca == Path("/a/ca")
    assert certified(process)


@pytest.mark.parametrize("settings", [{"nativePodGroups": False}, {"markPods": True}])
def test_without_native_groups(process: Started, settings: dict[str, bool]) -> None:
    """They have no effect beside marks."""
    process.main(**settings)
    assert process.native is False


def test_what_keeps_it_from_starting(process: Started) -> None:
    """A mistake in a file has another code than a file of TLS that cannot be used."""
    assert process.main(config=str(process.folder / "missing")) == 2
    assert not process.served
    process.failure = FileError("no such file")
    assert process.main() == 1
