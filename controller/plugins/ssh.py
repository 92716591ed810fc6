"""Plugin `ssh`: the pods of a Job may log in to each other.

One pair of keys for the Job, in a Secret that is mounted as `.ssh`. The Secret lives as long as pods of the Job do: it
stays through restarts of pods, tasks and the whole Job, and is never given other keys, as running pods have mounted
the old ones.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence

from certs.ssh import KeyPair, key_pair, pair_of
from controller.job.rules.pods import Manifest
from controller.job.rules.sync import PodSlot
from controller.plugins.base import Owned, PluginError, add_volume
from muster.api.batch import Job
from muster.api.core import SECRETS
from muster.runtime.job_hosts import task_hosts
from muster.runtime.job_plugins import FLAGS, flags

PRIVATE, PUBLIC, AUTHORIZED, CONFIG = "id_rsa", "id_rsa.pub", "authorized_keys", "config"
"""The files, whatever kind of keys they hold: ssh looks for these names, and programs of users do."""

_FOLDER = ".ssh"
_DEFAULT_PATH = FLAGS["ssh"]["ssh-key-file-path"]
_DEFAULT_PORT = 22
_FOR_ROOT, _FOR_EVERYBODY = 0o600, 0o644


class SSH:
    """Flags: ssh-key-file-path, ssh-private-key, ssh-public-key, ssh-port, and ssh-key-type (ed25519, rsa)."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._flags = flags("ssh", arguments)
        kinds = ("ed25519", "rsa")
        if self._flags["ssh-key-type"] not in kinds:
            raise PluginError(f"spec.plugins[ssh]: ssh-key-type must be one of {', '.join(kinds)}")

    def objects(self, job: Job) -> list[Owned]:
        """The Secret: the hosts of the Job in `config`, and the keys, which are made once."""
        data = {CONFIG: b64encode(config(job, self._flags["ssh-port"]).encode()).decode()}
        given = self._given()
        manifest = {"metadata": {"name": secret_name(job)}, "type": "Opaque", "data": data}
        return [Owned(SECRETS, manifest, made_once=lambda: _files(given or key_pair(self._flags["ssh-key-type"])))]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Mounts the Secret; where others than root are to read it, with a mode that lets them."""
        del slot
        path = self._flags["ssh-key-file-path"]
        name = secret_name(job)
        secret = {
            "secretName": name,
            "defaultMode": _FOR_ROOT if path == _DEFAULT_PATH else _FOR_EVERYBODY,
            "items": [{"key": key, "path": f"{_FOLDER}/{key}"} for key in (PRIVATE, PUBLIC, AUTHORIZED, CONFIG)],
        }
        add_volume(manifest, {"name": name, "secret": secret}, path=path, sub_path=_FOLDER)

    def _given(self) -> KeyPair | None:
        """The keys that the user brings; the public one follows from the private one if it is left out."""
        private, public = self._flags["ssh-private-key"], self._flags["ssh-public-key"]
        if not private:
            return None
        if public:
            return KeyPair(private.encode(), public.encode())
        try:
            return pair_of(private.encode())
        except ValueError as error:
            raise PluginError(f"spec.plugins[ssh]: ssh-private-key: {error}; or give ssh-public-key too") from error


def secret_name(job: Job) -> str:
    """The Secret's name, which is also the volume's."""
    return f"{job.metadata.name}-ssh"


def config(job: Job, port: int) -> str:
    """The client's configuration: no questions about unknown hosts, and short names for all pods of the Job."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in job.spec.tasks:
        for host in task_hosts(job, task):
            lines += [f"Host {host.partition('.')[0]}", f"  HostName {host}"]
            lines += [f"  Port {port}"] if port != _DEFAULT_PORT else []
    return "\n".join(lines) + "\n"


def _files(pair: KeyPair) -> Mapping[str, str]:
    files = {PRIVATE: pair.private, PUBLIC: pair.public, AUTHORIZED: pair.public}
    return {name: b64encode(content).decode() for name, content in files.items()}
