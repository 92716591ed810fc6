"""kubeconfig files: what they say together, and what is said of those that cannot be used, which quotes no secret."""

import base64
import json
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kubeconfigs import header, plain, service_account, write
from kubernetes.config import kube_config

from certs.authority import Authority
from muster.kube.config import ClientConfig, load_config
from muster.kube.errors import ConfigurationError

AUTHORITY = Authority.create("the cluster's")
SERVING = AUTHORITY.issue("server", dns_names=["api.example"], server=True)
CLIENT = AUTHORITY.issue("me", organizations=["us"], client=True)
PEM = {"ca": AUTHORITY.cert_pem, "crt": CLIENT.cert_pem, "key": CLIENT.key_pem}


def test_several_files_are_one(tmp_path: Path) -> None:
    """As the package merges them: of entries of a name the first counts, of `current-context` the last."""
    contexts = [{"name": "a", "context": {"user": "me", "cluster": "x"}}]
    clusters = [{"name": "x", "cluster": {"server": "http://first"}}]
    first = {"current-context": "b", "contexts": contexts, "clusters": clusters}
    second = {
        "current-context": "a",
        "contexts": [
            {"name": "b", "context": {"user": "other", "cluster": "x", "namespace": "team"}},
            {"name": "a", "context": {"user": "other", "cluster": "x"}},
        ],
        "clusters": [{"name": "x", "cluster": {"server": "http://second"}}],
        "users": [{"name": "me", "user": {"tokenFile": "mine"}}, {"name": "other", "user": {"token": "theirs"}}],
    }
    files = [write(tmp_path / "one" / "first", first), str(tmp_path / "missing"), write(tmp_path / "two" / "s", second)]
    (tmp_path / "two" / "mine").write_text("of the second's folder")
    config = load_config(os.pathsep.join(files))
    assert (config.server, config.namespace, header(config)) == (
        "http://first", "default", "Bearer of the second's folder",
    )  # fmt: skip
    del second["current-context"]
    write(tmp_path / "two" / "s", second)
    config = load_config(os.pathsep.join(files))
    assert (config.server, config.namespace, header(config)) == ("http://first", "team", "Bearer theirs")


ONE = "current-context: a\ncontexts: [{name: a, context: {cluster: x, user: u}}]\nclusters: [{name: x, cluster: %s}]\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: [", "config is not YAML, see line 1"),
        ('users:\n- {name: a, user: {token: "geheim', "is not YAML, see line 2"),
        ("users:\n- {name: a, user: {token: geheim\nb: *geheim", "is not YAML, see line 3"),
        ("", "should be a mapping"),
        ("- a", "should be a mapping"),
        ("contexts: []", "current-context names '', which is not among its contexts: none"),
        ("current-context: b\ncontexts: [{name: a}, {name: c}]", "'b', which is not among its contexts: a, c"),
        ("current-context: a\ncontexts: [{name: a, context: {cluster: x}}]", "context a names 'x', .* clusters: none"),
        (ONE % "{server: http://s}", "context a names 'u', which is not among its users: none"),
        (ONE % "{server: http://s}" + "users: [{name: u, user: {token: geheim}}, {user: geheim}]", "lists of entries"),
        ("current-context: a\ncontexts: [{context: {}}]", "missing required field `name`"),
        ("users: [{name: a, user: 5}]", r"Expected `object . null`, got `int` - at `\$.users"),
        (
            ONE % "{server: http://s}"
            + "users: [{name: u, user: {exec: {apiVersion: v1, command: geheim, env: [{name: PASSWORD, geheim: x}]}}}]",
            "missing required field `value`",
        ),
        (ONE % "{server: 5}" + "users: [{name: u}]", "Expected `str`, got `int`"),
        (ONE % "{}", "the server '' should begin with https://"),
        (ONE % "{server: http://s}" + "users: [{name: u}]", "the entry 'u' of its users has no `user`"),
        (ONE % "{server: https://s}" + "users: [{name: u, user: {client-certificate-data: geheim}}]",
            "the file cannot be read"),
        (
            ONE % "{server: https://s}"
            + "users: [{name: u, user: {auth-provider: {name: gcp, config: {cmd-path: cat /geheim}}}}]",
            r"the file cannot be read \(ConfigException\)",
        ),
        (ONE % "{server: https://s}" + "users: [{name: u, user: {client-key: k}}]", "File does not exist: .*/k"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    tmp_path: Path, content: str, said: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """With what there is instead, and without what may be a secret; the package's own words are not printed."""
    (tmp_path / "config").write_text(content)
    with pytest.raises(ConfigurationError, match=said) as caught:
        load_config(tmp_path / "config")
    assert "geheim" not in "".join((str(caught.value), *capfd.readouterr(), caplog.text))


def test_a_pipe_will_do(tmp_path: Path) -> None:
    """As a shell passes one that a command prints: `--kubeconfig <(…)`."""
    os.mkfifo(tmp_path / "pipe")
    content = plain({"server": "http://127.0.0.1:1"}, {"token": "secret"})
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit((tmp_path / "pipe").write_text, json.dumps(content))
        assert header(load_config(tmp_path / "pipe")) == "Bearer secret"
        writing.result()


def test_the_service_account_of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token, and only its own authority; by an address of either kind."""
    SERVING.save(tmp_path, "serving")
    service_account(tmp_path, monkeypatch, AUTHORITY.cert_pem, "secret")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    config = load_config("")
    assert (config.server, (header(config) or "").lower()) == ("https://[fd00::1]:443", "bearer secret")
    assert handshake(config, tmp_path) == "nobody"
    (tmp_path / "ca.crt").write_bytes(Authority.create("another").cert_pem)
    assert handshake(load_config(""), tmp_path) == "CERTIFICATE_VERIFY_FAILED"
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    with pytest.raises(ConfigurationError, match="cannot use the pod's service account: Service host/port is not set"):
        load_config("")


def test_the_environment_may_name_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a kubeconfig, and for the service account of a pod."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    file = write(tmp_path / "config", plain({"server": "https://api.example"}, {"token": "secret"}))
    assert load_config(file).proxy == "http://proxy.example:3128"
    service_account(tmp_path, monkeypatch, AUTHORITY.cert_pem, "secret")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert load_config("").proxy == "http://proxy.example:3128"
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    assert load_config("").proxy is None


def as_file_or_data(name: str, pem: str, *, data: bool) -> dict[str, str]:
    """A certificate or key by its file's name, or in the kubeconfig itself; where both stand, the file is not read."""
    if not data:
        return {name: pem}
    return {f"{name}-data": base64.b64encode(PEM[pem]).decode(), name: "not there"}


@pytest.mark.parametrize("data", [False, True], ids=["in files", "in the kubeconfig"])
def test_certificates_say_who_either_side_is(tmp_path: Path, *, data: bool) -> None:
    """Wherever they stand; no key of ours stays in a file."""
    SERVING.save(tmp_path, "serving")
    for name, pem in PEM.items():
        (tmp_path / name).write_bytes(pem)
    cluster: dict[str, Any] = {"server": "https://api.example:6443/"}
    trusting = cluster | as_file_or_data("certificate-authority", "ca", data=data)
    user = as_file_or_data("client-certificate", "crt", data=data) | as_file_or_data("client-key", "key", data=data)
    assert handshake(load_config(write(tmp_path / "config", plain(trusting, user))), tmp_path) == "me"
    assert handshake(load_config(write(tmp_path / "config", plain(trusting, {}))), tmp_path) == "nobody"
    unknown = handshake(load_config(write(tmp_path / "config", plain(cluster, user))), tmp_path)
    assert unknown == "CERTIFICATE_VERIFY_FAILED"
    assert not [file for file in kube_config._temp_files.values() if Path(file).exists()]


def handshake(config: ClientConfig, folder: Path) -> str:
    """Whom a server sees that is api.example and asks for a certificate; or why there is no connection."""
    if config.tls is None:
        return "no TLS"
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=AUTHORITY.cert_pem.decode())
    context.load_cert_chain(folder / "serving.crt", folder / "serving.key")
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = config.tls.wrap_bio(to_client, to_server, server_hostname="api.example")
    done: set[object] = set()
    while len(done) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                return str(error.reason)
    return "me" if "'me'" in str((server.getpeercert() or {}).get("subject")) else "nobody"
