"""kubeconfig files: what they say together, and that it is what the `kubernetes` package reads in them, without it."""

import base64
import json
import os
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from certs.authority import Authority
from muster.kube import kubeconfig, logins
from muster.kube.config import Config, load_config
from muster.kube.errors import ConfigurationError

AUTHORITY = Authority.create("the cluster's")
SERVING = AUTHORITY.issue("server", dns_names=["api.example"], server=True)
CLIENT = AUTHORITY.issue("me", organizations=["us"], client=True)
PEM = {"ca": AUTHORITY.cert_pem, "crt": CLIENT.cert_pem, "key": CLIENT.key_pem}


def write(file: Path, content: dict[str, Any]) -> str:
    """A kubeconfig (JSON is YAML)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return str(file)


def plain(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """A file with one context."""
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }


def test_several_files_are_one(tmp_path: Path) -> None:
    """As kubectl merges them: the first that says something wins, missing files say nothing, paths are their file's."""
    first = {
        "current-context": "b",
        "contexts": [{"name": "a", "context": {"user": "me", "cluster": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "first", "certificate-authority": "../ca"}}],
    }
    second = {
        "current-context": "a",
        "contexts": [
            {"name": "b", "context": {"user": "other", "cluster": "x", "namespace": "team"}},
            {"name": "a", "context": {"user": "other", "cluster": "x"}},
        ],
        "clusters": [{"name": "x", "cluster": {"server": "second"}}],
        "users": [{"name": "me", "user": {"tokenFile": "mine"}}, {"name": "other", "user": {"tokenFile": "/theirs"}}],
    }
    files = [write(tmp_path / "one" / "first", first), str(tmp_path / "missing"), write(tmp_path / "two" / "s", second)]
    cluster = {"server": "first", "certificate-authority": str(tmp_path / "one" / "../ca")}
    both = kubeconfig.read(os.pathsep.join(files))
    assert both == kubeconfig.Kubeconfig("b", "team", cluster, {"tokenFile": "/theirs"})
    write(tmp_path / "one" / "first", {**first, "current-context": "a"})
    both = kubeconfig.read(os.pathsep.join(files))
    assert both == kubeconfig.Kubeconfig("a", "", cluster, {"tokenFile": str(tmp_path / "two" / "mine")})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: [", "is no YAML, see line 1"),
        ('users:\n- {name: a, user: {token: "geheim', "is no YAML, see line 2"),
        ("users:\n- {name: a, user: {token: geheim\nb: *geheim", "is no YAML, see line 3"),
        ("", "is empty"),
        ("- a", "not a mapping"),
        ("contexts: []", "current-context names '', which is not among its contexts: none"),
        ("current-context: b\ncontexts: [{name: a}, {name: c}]", "'b', which is not among its contexts: a, c"),
        ("current-context: a\ncontexts: [{name: a, context: {cluster: x}}]", "context a names 'x', .* clusters: none"),
        ("current-context: a\ncontexts: [{context: {}}]", "each of `contexts` should have a name"),
        ("users: [{name: a, user: 5}]", "each of `users` should have a name and a `user`"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: str, said: str) -> None:
    """With what there is instead, and without what may be a secret."""
    (tmp_path / "config").write_text(content)
    with pytest.raises(ConfigurationError, match=said) as caught:
        load_config(tmp_path / "config")
    assert "geheim" not in str(caught.value)


def test_a_pipe_will_do(tmp_path: Path) -> None:
    """As a shell passes one that a command prints: `--kubeconfig <(…)`."""
    os.mkfifo(tmp_path / "pipe")
    content = plain({"server": "http://127.0.0.1:1"}, {"token": "secret"})
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit((tmp_path / "pipe").write_text, json.dumps(content))
        assert load_config(tmp_path / "pipe").authorization() == "Bearer secret"
        writing.result()


def test_the_service_account_of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token, and only its own authority; by an address of either kind."""
    SERVING.save(tmp_path, "serving")
    (tmp_path / "token").write_text("secret")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.cert_pem)
    monkeypatch.setattr("muster.kube.config.SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    config = load_config("")
    assert (config.server, config.authorization()) == ("https://[fd00::1]:443", "Bearer secret")
    assert handshake(config, tmp_path) == "nobody"
    (tmp_path / "ca.crt").write_bytes(Authority.create("another").cert_pem)
    assert handshake(load_config(""), tmp_path) == "CERTIFICATE_VERIFY_FAILED"
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    with pytest.raises(ConfigurationError, match="KUBERNETES_SERVICE_PORT are not set, so this is no pod"):
        load_config("")


def test_who_logs_in_is_of_the_same_context(tmp_path: Path) -> None:
    """That of the first file; and a file with a token counts before a login."""
    first = {**plain({"server": "http://first"}, {"username": "me", "password": "secret"}), "current-context": "here"}
    second = plain({"server": "http://second"}, {"token": "secret"})
    second["current-context"] = "there"
    second["contexts"] = [{"name": "there", "context": {"cluster": "d", "user": "v"}}]
    second["clusters"][0]["name"], second["users"][0]["name"] = "d", "v"
    files = os.pathsep.join((write(tmp_path / "first", first), write(tmp_path / "second", second)))
    config = load_config(files)
    assert (config.server, config.authorization()) == ("http://first", "Basic bWU6c2VjcmV0")
    (tmp_path / "token").write_text("of a file")
    first["users"][0]["user"] |= {"tokenFile": "token", "token": "in the kubeconfig"}
    write(tmp_path / "first", first)
    assert load_config(files).authorization() == "Bearer of a file"


def test_the_environment_may_name_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a kubeconfig, and for the service account of a pod."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    file = write(tmp_path / "config", plain({"server": "https://api.example"}, {"token": "secret"}))
    assert load_config(file).proxy == "http://proxy.example:3128"
    (tmp_path / "token").write_text("secret")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.cert_pem)
    monkeypatch.setattr("muster.kube.config.SERVICE_ACCOUNT", tmp_path)
    for name in ("token", "cert"):
        file = str(tmp_path / {"token": "token", "cert": "ca.crt"}[name])
        monkeypatch.setattr(f"kubernetes.config.incluster_config.SERVICE_{name.upper()}_FILENAME", file)
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


clusters = st.fixed_dictionaries(
    {"server": st.sampled_from(["https://api.example:6443/", "https://10.0.0.1/prefix", "http://127.0.0.1:8080"])},
    optional={"tls-server-name": st.just("api.example"), "insecure-skip-tls-verify": st.booleans()},
)
GIVEN = ("", "file", "data")
tokens = st.fixed_dictionaries({}, optional={"token": st.just("secret")})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cluster=clusters, user=tokens, ca=st.sampled_from(GIVEN), mine=st.sampled_from(GIVEN))
def test_it_is_what_the_package_reads(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], ca: str, mine: str
) -> None:
    """Server, name, token, and what either side of a handshake sees."""
    SERVING.save(tmp_path, "serving")
    for name, pem in PEM.items():
        (tmp_path / name).write_bytes(pem)
    if ca:
        cluster = cluster | as_file_or_data("certificate-authority", "ca", data=ca == "data")
    if mine:
        user = user | as_file_or_data("client-certificate", "crt", data=mine == "data")
        user = user | as_file_or_data("client-key", "key", data=mine == "data")
    file = write(tmp_path / "config", plain(cluster, user))
    ours, theirs = load_config(file), logins.of_context(file, "here", None)
    assert (ours.server, ours.server_name, ours.proxy) == (theirs.server, theirs.server_name, theirs.proxy)
    assert ours.authorization() == theirs.authorization()
    assert handshake(ours, tmp_path) == handshake(theirs, tmp_path)
    if ours.tls is not None and ca and mine:
        assert handshake(ours, tmp_path) == "me"


def handshake(config: Config, folder: Path) -> str:
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


def test_what_is_plain_is_read_without_the_package(tmp_path: Path) -> None:
    """It takes a third of what an extender takes to start; whoever has a program to run gets it."""
    script = "import sys, extender.main as it; it.load_config(sys.argv[1]); print('kubernetes' in sys.modules)"
    cluster = {"server": "http://127.0.0.1:1"}
    for user, imported in (({"token": "secret"}, "False"), ({"username": "me", "password": "secret"}, "True")):
        file = write(tmp_path / "config", plain(cluster, user))
        command = [sys.executable, "-c", script, file]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == imported
