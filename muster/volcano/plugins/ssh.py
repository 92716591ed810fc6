"""Plugin `ssh`, by which the pods of a Job can log in to each other.

The Job has one key pair, in a Secret that is mounted as the directory `.ssh`. The Secret exists as long as the Job has
pods, even during restarts. The keys never change, because running pods have mounted them.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from muster.api.kubernetes import core, endpoints
from muster.api.volcano.batch import Job
from muster.volcano.manifests import Manifest, add_volume, folder, key_mode
from muster.volcano.plugins.base import Flags, JobPlugin, KeyMaker, Owned, PluginError
from muster.volcano.tasks import PodSlot, task_hosts

PRIVATE, PUBLIC, AUTHORIZED, CONFIG = "id_rsa", "id_rsa.pub", "authorized_keys", "config"
"""File names for every kind of key, as ssh and users' programs expect them."""

_FOLDER = ".ssh"
_DEFAULT_PATH = "/root/.ssh"
_DEFAULT_PORT = 22


class SSH(JobPlugin):
    """Plugin ssh; flags: ssh-key-file-path, ssh-private-key, ssh-public-key, ssh-port, ssh-key-type (ed25519, rsa)."""

    name = "ssh"
    flags: ClassVar[Flags] = {
        "ssh-key-file-path": _DEFAULT_PATH,
        "ssh-private-key": "",
        "ssh-public-key": "",
        "ssh-port": _DEFAULT_PORT,
        "ssh-key-type": "ed25519",
    }

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        kinds = ("ed25519", "rsa")
        if self.values["ssh-key-type"] not in kinds:
            raise PluginError(f"spec.plugins[ssh]: ssh-key-type must be one of {', '.join(kinds)}")

    def objects(self, job: Job) -> Sequence[Owned]:
        """Return the Secret with the hosts of the Job in `config`, and with the keys, which are generated once."""
        data = {CONFIG: b64encode(config(job, self.values["ssh-port"]).encode()).decode()}
        manifest = {"metadata": {"name": secret_name(job)}, "type": "Opaque", "data": data}
        return [Owned(core.SECRETS, manifest, keys=self._files)]

    def shape(self, job: Job, slot: PodSlot, manifest: Manifest) -> None:
        """Mount the Secret with a file mode that ssh accepts, and that lets the pod's user read the keys."""
        path = folder(self.values["ssh-key-file-path"])
        name = secret_name(job)
        secret = {
            "secretName": name,
            "defaultMode": key_mode(manifest["spec"], path),
            "items": [{"key": key, "path": f"{_FOLDER}/{key}"} for key in (PRIVATE, PUBLIC, AUTHORIZED, CONFIG)],
        }
        add_volume(manifest, {"name": name, "secret": secret}, path=path, sub_path=_FOLDER)

    def _files(self, keys: KeyMaker) -> Mapping[str, str]:
        """Return the user's own keys or new ones; a missing public key is derived from the private key."""
        private, public = self.values["ssh-private-key"], self.values["ssh-public-key"]
        if not private:
            pair = keys.key_pair(self.values["ssh-key-type"])
            return _entries(pair.private, pair.public)
        if public:
            return _entries(private.encode(), public.encode())
        try:
            return _entries(private.encode(), keys.pair_of(private.encode()).public)
        except ValueError as error:
            raise PluginError(f"spec.plugins[ssh]: ssh-private-key: {error}; or give ssh-public-key too") from error


def secret_name(job: Job) -> str:
    """Return the name of the Secret and of its volume."""
    return f"{job.metadata.name}-ssh"


def config(job: Job, port: int) -> str:
    """Return the ssh client's configuration: no questions about unknown hosts, and short names for all pods.

    The configuration has one pattern for each task, so that its size does not grow with the number of pods. A Secret
    can contain 1 MiB. ssh uses the first pattern that matches, so longer, more specific patterns come first. Host names
    with a dot are already complete.
    """
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for pattern, host in sorted(_patterns(job), key=lambda pair: len(pair[0]), reverse=True):
        lines += [f"Host {pattern}", f"  HostName {host}"]
        lines += [f"  Port {port}"] if port != _DEFAULT_PORT else []
    return "\n".join(lines) + "\n"


def _patterns(job: Job) -> Iterator[tuple[str, str]]:
    """Yield each task's pattern of short host names for ssh_config, and the full name; %h in it is the short name."""
    for task in job.spec.tasks:
        hosts = task_hosts(job, task)
        if isinstance(hosts, endpoints.NumberedNames):
            yield f"{hosts.prefix}* !*.*", f"%h{hosts.suffix}"
        else:
            yield from ((host.partition(".")[0], host) for host in hosts)


def _entries(private: bytes, public: bytes) -> Mapping[str, str]:
    files = {PRIVATE: private, PUBLIC: public, AUTHORIZED: public}
    return {name: b64encode(content).decode() for name, content in files.items()}
