"""Plugin ssh: one Secret per Job, and where its files are."""

import subprocess
from base64 import b64decode
from pathlib import Path
from shutil import which

import pytest
from plugin_jobs import container, job, objects, shaped

from certs import ssh
from muster.volcano.plugins.base import Owned, PluginError


def files(owned: Owned) -> dict[str, str]:
    """The Secret's files as they are created."""
    assert owned.keys is not None
    entries = {**owned.manifest["data"], **owned.keys(ssh)}
    return {name: b64decode(text).decode() for name, text in entries.items()}


def test_the_secret() -> None:
    """Four files: the keys are made when the Secret is created, the configuration can be brought up to date."""
    (owned,) = objects(job({"a": 1, "b": 2}, ssh=[]))
    assert (owned.resource.kind, owned.manifest["metadata"]["name"]) == ("Secret", "j-ssh")
    assert set(owned.manifest["data"]) == {"config"}
    made = files(owned)
    assert set(made) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert made["id_rsa"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert made["id_rsa.pub"] == made["authorized_keys"]
    assert made["id_rsa.pub"].startswith("ssh-ed25519 ")
    assert made["config"] == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        "Host j-a-* !*.*\n  HostName %h.j\nHost j-b-* !*.*\n  HostName %h.j\n"
    )


def test_rsa_and_port() -> None:
    """Keys in the format of old readers; a port other than 22 stands at every host; a port that is none is 22."""
    (owned,) = objects(job({"a": 1}, ssh=["--ssh-key-type=rsa", "--ssh-port=2222"]))
    made = files(owned)
    assert made["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert made["id_rsa.pub"].startswith("ssh-rsa ")
    assert "Host j-a-* !*.*\n  HostName %h.j\n  Port 2222\n" in made["config"]
    (owned,) = objects(job({"a": 1}, ssh=["--ssh-port=many"]))
    assert "Port" not in files(owned)["config"]


def test_names_that_templates_give() -> None:
    """A task's own subdomain and host name; a name that begins as another task's is the longer one's."""
    of = job({"a": 2, "a-b": 2, "c": 1}, ssh=[])
    of.spec.tasks[1].template["spec"]["subdomain"] = "elsewhere"
    of.spec.tasks[2].template["spec"]["hostname"] = "head"
    (owned,) = objects(of)
    assert files(owned)["config"].endswith(
        "Host j-a-b-* !*.*\n  HostName %h.elsewhere\nHost j-a-* !*.*\n  HostName %h.j\nHost head\n  HostName head.j\n"
    )


def test_the_configuration_does_not_grow_with_the_pods() -> None:
    """A Secret holds 1 MiB, however many workers there are."""
    sizes = {len(files(*objects(job({"worker": count}, ssh=[])))["config"]) for count in (1, 9_000, 1_000_000_000)}
    assert len(sizes) == 1


@pytest.mark.skipif(which("ssh") is None, reason="needs the program ssh")
def test_what_ssh_makes_of_it(tmp_path: Path) -> None:
    """The short name of a pod becomes the whole one, and a whole one stays as it is."""
    (owned,) = objects(job({"a": 2}, ssh=["--ssh-port=2222"]))
    file = tmp_path / "config"
    file.write_text(files(owned)["config"])

    def understood(host: str) -> set[str]:
        done = subprocess.run(["ssh", "-G", "-F", str(file), host], capture_output=True, text=True, check=True)
        return {line for line in done.stdout.splitlines() if line.startswith(("hostname ", "port "))}

    assert understood("j-a-1") == {"hostname j-a-1.j", "port 2222"}
    assert understood("j-a-1.j") == {"hostname j-a-1.j", "port 22"}


def test_keys_of_the_user() -> None:
    """Both as given; the public one follows from the private one; a key that cannot be read is said."""
    pair = ssh.key_pair()
    given = [f"--ssh-private-key={pair.private.decode()}"]
    (owned,) = objects(job({"a": 1}, ssh=given))
    assert (files(owned)["id_rsa"], files(owned)["id_rsa.pub"]) == (pair.private.decode(), pair.public.decode())
    (owned,) = objects(job({"a": 1}, ssh=[*given, "--ssh-public-key=mine"]))
    assert files(owned)["authorized_keys"] == "mine"
    with pytest.raises(PluginError, match="ssh-private-key: the private key cannot be read"):
        files(*objects(job({"a": 1}, ssh=["--ssh-private-key=none"])))
    with pytest.raises(PluginError, match="ssh-key-type must be one of ed25519, rsa"):
        objects(job({"a": 1}, ssh=["--ssh-key-type=dsa"]))


@pytest.mark.parametrize(
    ("arguments", "path", "mode"),
    [([], "/root/.ssh", 0o600), (["--no-root", "--ssh-key-file-path=/home/me/.ssh"], "/home/me/.ssh", 0o644)],
)
def test_mounts(arguments: list[str], path: str, mode: int) -> None:
    """In every container; where somebody else than root reads them, with a mode that lets them."""
    manifest = shaped(job({"a": 1}, ssh=arguments), "a", 0)
    (volume,) = manifest["spec"]["volumes"]
    assert (volume["name"], volume["secret"]["secretName"], volume["secret"]["defaultMode"]) == ("j-ssh", "j-ssh", mode)
    paths = {item["key"]: item["path"] for item in volume["secret"]["items"]}
    assert paths == {name: f".ssh/{name}" for name in ("id_rsa", "id_rsa.pub", "authorized_keys", "config")}
    for name in ("main", "side", "init"):
        assert container(manifest, name)["volumeMounts"] == [{"name": "j-ssh", "mountPath": path, "subPath": ".ssh"}]
