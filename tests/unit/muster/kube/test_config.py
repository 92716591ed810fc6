"""Where the API server is and who we are, as kubeconfig files say it."""

import base64
import json
import ssl
import sys
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from kubeconfigs import header, kubeconfig, service_account
from kubernetes.config import incluster_config

from certs.authority import Authority
from muster.kube.config import ClientConfig, load_config
from muster.kube.errors import ConfigurationError

EXPIRED = "2020-01-01T00:00:00Z"


def program(script: str, **more: Any) -> dict[str, Any]:
    """A user whose credentials a program prints."""
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": ["-c", script], **more}}


def prints(status: dict[str, str]) -> str:
    """A program that gives these credentials, and with them how often it was run, as `runs` beside it."""
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"import json; open('runs', 'a').write('.'); print({json.dumps(credential)!r})"


def test_a_token_in_a_file_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever renews it writes the file anew; while it cannot be read, the last one stays."""
    (tmp_path / "token").write_text("first\n")
    config = load_config(kubeconfig(tmp_path, {"tokenFile": "token"}))
    assert header(config) == "Bearer first"
    (tmp_path / "token").write_text("second")
    assert header(config) == "Bearer second"
    for broken in (lambda: (tmp_path / "token").write_text(""), (tmp_path / "token").unlink):
        broken()
        assert header(config) == "Bearer second"
    assert "credentials not renewed" in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="token"):
        load_config(kubeconfig(tmp_path, {"tokenFile": "token"}))


def test_a_file_without_a_token_is_an_error(tmp_path: Path) -> None:
    """It would be a request of nobody."""
    (tmp_path / "token").touch()
    with pytest.raises(ConfigurationError, match="tokenFile of user 'me' gave no credentials"):
        load_config(kubeconfig(tmp_path, {"tokenFile": "token"}))


class Later(datetime):
    """A clock that is two minutes ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Later":
        """What it says."""
        return cls.fromtimestamp(datetime.now(tz).timestamp() + 120, tz)


def test_the_token_of_a_pod_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each minute: a kubelet renews it every hour or so."""
    service_account(tmp_path, monkeypatch, Authority.create("a test").cert_pem, "first")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    config = load_config("")
    assert (config.server, header(config).lower()) == ("https://127.0.0.1:6443", "bearer first")
    (tmp_path / "token").write_text("second")
    monkeypatch.setattr(incluster_config.datetime, "datetime", Later)
    assert header(config).lower() == "bearer second"


def test_the_environment_names_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a pod; a missing file is an error that says what to do."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": "secret"})))
    assert header(load_config()) == "Bearer secret"
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match=r"kubeconfig .*/missing: "):
        load_config()


def test_an_exec_plugin_gives_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As cloud providers' kubeconfigs do. It is run again when the token has expired, and not before."""
    monkeypatch.chdir(tmp_path)
    config = load_config(kubeconfig(tmp_path, program(prints({"token": "from-plugin"}))))
    assert [header(config), header(config)] == ["Bearer from-plugin"] * 2
    assert (tmp_path / "runs").read_text() == "."
    config = load_config(kubeconfig(tmp_path, program(prints({"token": "short", "expirationTimestamp": EXPIRED}))))
    assert [header(config), header(config)] == ["Bearer short"] * 2
    assert (tmp_path / "runs").read_text() == "...."


@pytest.mark.parametrize("script", ["raise SystemExit(1)", "print('{}')"], ids=["it fails", "it says nothing"])
def test_an_exec_plugin_that_gives_nothing_is_an_error(tmp_path: Path, script: str) -> None:
    """It would be a request of nobody."""
    with pytest.raises(ConfigurationError, match="exec of user 'me' gave no credentials"):
        load_config(kubeconfig(tmp_path, program(script)))


def id_token(ends_s: int) -> str:
    """A token of a login that ends then, in seconds since the epoch."""
    parts = ({"alg": "none"}, {"exp": ends_s})
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts) + ".x"


TOKEN = id_token(4_000_000_000)
LOGIN = {"name": "oidc", "config": {"id-token": TOKEN, "client-id": "c", "idp-issuer-url": "https://127.0.0.1:1"}}


@pytest.mark.parametrize(("user", "sent"), [
    pytest.param({"token": "secret"}, "Bearer secret", id="token"),
    pytest.param({}, None, id="nothing, where a client certificate says who we are"),
    pytest.param({"username": "me", "password": "secret"}, "Basic bWU6c2VjcmV0", id="password, for proxies"),
    pytest.param({"auth-provider": LOGIN}, f"Bearer {TOKEN}", id="login by OIDC, which the package renews"),
])  # fmt: skip
def test_credentials_are_a_header(tmp_path: Path, user: dict[str, Any], sent: str | None) -> None:
    """For every request."""
    config = load_config(kubeconfig(tmp_path, user))
    assert (config.server, config.namespace) == ("https://127.0.0.1:6443/prefix", "default")
    assert [header(config), header(config)] == [sent, sent]


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
    config = ClientConfig(server="http://127.0.0.1:1")
    assert (config.tls, config.proxy, config.authorization) == (None, None, None)
