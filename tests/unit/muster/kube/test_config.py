"""Where the API server is and who we are, as kubeconfig files say it."""

import json
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from certs.authority import Authority
from muster.kube.config import Config, context_namespace, load_config
from muster.kube.errors import ConfigurationError


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig file (JSON is YAML)."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:6443/prefix/", **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(content))
    return file


def test_a_token_becomes_a_header(tmp_path: Path) -> None:
    """For every request."""
    config = load_config(kubeconfig(tmp_path, {"token": "secret"}))
    assert config.server == "https://127.0.0.1:6443/prefix"
    assert config.authorization() == "Bearer secret"
    assert config.authorization() == "Bearer secret"


def test_a_token_in_a_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever renews it writes the file anew; while it cannot be read, the last one stays."""
    now = [0.0]
    monkeypatch.setattr("muster.kube.config.time.monotonic", lambda: now[0])
    (tmp_path / "token").write_text("first\n")
    config = load_config(kubeconfig(tmp_path, {"tokenFile": "token"}))
    (tmp_path / "token").write_text("second")
    assert config.authorization() == "Bearer first"
    now[0] += 11
    assert config.authorization() == "Bearer second"
    for broken in (lambda: (tmp_path / "token").write_text(""), (tmp_path / "token").unlink):
        broken()
        now[0] += 11
        assert config.authorization() == "Bearer second"
    with pytest.raises(ConfigurationError, match="token"):
        load_config(kubeconfig(tmp_path, {"tokenFile": "token"}))


def test_the_token_of_a_pod_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that nobody sets: a kubelet renews it every hour or so."""
    now = [0.0]
    monkeypatch.setattr("muster.kube.config.time.monotonic", lambda: now[0])
    ca = Authority.create("a test").cert_pem
    for name, content in (("token", b"first"), ("ca.crt", ca)):
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("muster.kube.config.SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    config = load_config("")
    assert (config.server, config.authorization()) == ("https://127.0.0.1:6443", "Bearer first")
    (tmp_path / "token").write_text("second")
    now[0] += 11
    assert config.authorization() == "Bearer second"


def test_the_namespace_of_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the context says; `default` where it says nothing, or where there is no file."""
    file = kubeconfig(tmp_path, {"token": "secret"})
    assert context_namespace(file) == "default"
    content = json.loads(file.read_text())
    content["contexts"][0]["context"]["namespace"] = "team"
    file.write_text(json.dumps(content))
    assert context_namespace(file) == "team"
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert context_namespace() == "team"
    assert context_namespace(tmp_path / "missing") == "default"


def test_the_environment_names_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a pod; a missing file is an error that says what to do."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": "secret"})))
    assert load_config().authorization() == "Bearer secret"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match=r"kubeconfig .*/missing: "):
        load_config()


def test_an_exec_plugin_gives_a_token(tmp_path: Path) -> None:
    """As cloud providers' kubeconfigs do."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from-plugin"},
    }
    plugin = {
        "apiVersion": credential["apiVersion"],
        "command": sys.executable,
        "args": ["-c", f"print({json.dumps(credential)!r})"],
        "interactiveMode": "Never",
    }
    assert load_config(kubeconfig(tmp_path, {"exec": plugin})).authorization() == "Bearer from-plugin"


def test_without_a_token_there_is_no_header(tmp_path: Path) -> None:
    """A client certificate says who we are."""
    assert load_config(kubeconfig(tmp_path, {})).authorization() is None


def test_tls_verifies_unless_told_otherwise(tmp_path: Path) -> None:
    """And under the name that the kubeconfig gives."""
    config = load_config(kubeconfig(tmp_path, {}, **{"tls-server-name": "api.example"}))
    assert config.tls is not None
    assert (config.tls.verify_mode, config.tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert config.server_name == "api.example"
    config = load_config(kubeconfig(tmp_path, {}, **{"insecure-skip-tls-verify": True}))
    assert config.tls is not None
    assert (config.tls.verify_mode, config.tls.check_hostname) == (ssl.CERT_NONE, False)


def test_a_proxy_is_used_where_the_cluster_names_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the server is exempt."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    file = kubeconfig(tmp_path, {}, **{"proxy-url": "http://proxy.example:3128"})
    assert load_config(file).proxy == "http://proxy.example:3128"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert load_config(file).proxy is None


@pytest.mark.parametrize("url", ["socks5://u:geheim@proxy.example:1080", "proxy.example:3128", "https://"])
def test_a_proxy_that_cannot_be_used_is_refused(tmp_path: Path, url: str) -> None:
    """With what can be used, and without showing a password."""
    file = kubeconfig(tmp_path, {}, **{"proxy-url": url})
    with pytest.raises(ConfigurationError, match=r"should begin with http:// or https://") as caught:
        load_config(file)
    assert "geheim" not in str(caught.value)


def test_a_server_without_a_scheme_is_refused(tmp_path: Path) -> None:
    """As kubectl would guess, and we do not."""
    with pytest.raises(ConfigurationError, match="should begin with https://"):
        load_config(kubeconfig(tmp_path, {"token": "secret"}, server="127.0.0.1:6443"))


def test_defaults_are_harmless() -> None:
    """A plain address without anything else."""
    config = Config(server="http://127.0.0.1:1")
    assert (config.tls, config.proxy, config.authorization()) == (None, None, None)
