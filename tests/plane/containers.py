"""Runs the containers of a pod as processes of this machine, as the pod's spec says: a kubelet without images.

A container has the arguments, the user, the files and the token that its pod names, at the paths that it names, a root
that cannot be written, no capabilities, and the pod's name as its host name. Only its network is the machine's: the
pod's address is one of the loopback network. That takes root, and the right to make namespaces.
"""

import base64
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from ssl import CERT_NONE, SSLContext, create_default_context
from typing import Any, Final

from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
REPOSITORY: Final = Path(__file__).parents[2]
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - where a pod finds its token
_TOKEN_LIFE_S: Final = 3607  # what the kubelet asks for
_USER: Final = 65532


def possible() -> str:
    """Why containers cannot be run here; empty if they can."""
    if os.geteuid():
        return "running containers takes root"
    tried = subprocess.run(["unshare", "--mount", "--uts", "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode else ""


@dataclass(slots=True)
class Machine:
    """Where containers run: the plane that their pods are in, and a folder for what they mount."""

    plane: Plane
    folder: Path
    client: Client
    running: list["RunningPod"] = field(default_factory=list)

    def run(self, pod: JSON, address: str) -> "RunningPod":
        """Starts the containers of a pod at that address."""
        one = RunningPod(self, pod, address)
        self.running.append(one)
        one.start()
        return one

    def stop(self) -> None:
        """Ends everything, the newest first."""
        while self.running:
            self.running.pop().stop()

    def raw(self, path: str) -> Any:
        """An object as the API server has it."""
        return json.loads(self.client.request("GET", path))


class RunningPod:
    """A pod's containers."""

    def __init__(self, machine: Machine, pod: JSON, address: str) -> None:
        self.name: str = pod["metadata"]["name"]
        self.address = address
        self._machine = machine
        self._pod = pod
        self._folder = machine.folder / self.name
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def alive(self) -> bool:
        """Whether every container runs."""
        return all(process.poll() is None for process in self._processes.values())

    def start(self) -> None:
        """Starts each container."""
        self._folder.mkdir()
        volumes = {each["name"]: self._volume(each) for each in self._pod["spec"].get("volumes", ())}
        token = self._token()
        for container in self._pod["spec"]["containers"]:
            mounts = {each["mountPath"]: volumes[each["name"]] for each in container.get("volumeMounts", ())}
            self._processes[container["name"]] = self._process(container, {**mounts, _TOKEN_PATH: token})

    def stop(self) -> None:
        """Ends each container as a kubelet does, but for the patience."""
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def kill(self) -> None:
        """Ends each container at once."""
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def renew(self) -> None:
        """Brings the volumes of Secrets up to date, as a kubelet does every minute or two."""
        for volume in self._pod["spec"].get("volumes", ()):
            if "secret" in volume:
                for name, value in self._secret(volume["secret"]).items():
                    _put(self._folder / f"volume-{volume['name']}" / name, value)

    def log(self) -> str:
        """What the containers have said."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("*.log")))

    def not_ready(self) -> str:
        """What its readiness probes say; empty if all are content."""
        if not self.alive:
            return f"a container of {self.name} has ended: {self.log()[-3000:]}"
        return "; ".join(filter(None, map(self._probe, self._pod["spec"]["containers"])))

    def _probe(self, container: JSON) -> str:
        probe = container["readinessProbe"]["httpGet"]
        port = next(each["containerPort"] for each in container["ports"] if each["name"] == probe["port"])
        url = f"{probe.get('scheme', 'HTTP').lower()}://{self.address}:{port}{probe['path']}"
        try:
            with urllib.request.urlopen(url, timeout=5, context=_trusting()) as answer:  # noqa: S310 - a probe's
                return "" if answer.status == 200 else f"{url}: {answer.status}"
        except OSError as error:
            body = error.read().decode() if isinstance(error, urllib.error.HTTPError) else ""
            return f"{url}: {error} {body}"

    def _process(self, container: JSON, mounts: Mapping[str, Path]) -> subprocess.Popen[bytes]:
        program, *arguments = [*container["command"], *container.get("args", ())]
        path = Path(sys.executable) if program == "python" else self._machine.plane.commandlines.binaries()[program]
        environment = self._environment(container)
        expanded = [_expand(each, environment) for each in arguments]
        command = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), str(path), *expanded]
        security = {**self._pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}
        script = "\n".join(self._script(container["name"], mounts, [path.parent], command, security))
        with (self._folder / f"{container['name']}.log").open("ab") as log:
            return subprocess.Popen(
                ["unshare", "--mount", "--uts", "sh", "-ec", script],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _script(
        self, name: str, mounts: Mapping[str, Path], programs: list[Path], command: list[str], security: JSON
    ) -> Iterator[str]:
        """Makes the container's root out of the machine's, and becomes its process."""
        root = self._folder / f"{name}.root"
        root.mkdir()
        yield f"hostname {self.name}"
        yield "mount --make-rprivate /"
        yield f"mount --rbind / {root}"
        for place in ("/etc", "/run"):
            yield f"mount -t tmpfs -o mode=755 none {root}{place}"
        yield f"cp -a /etc/. {root}/etc/"
        for path, source in mounts.items():
            inside = f"{root}{path}".replace("/var/run/", "/run/")
            yield f"mkdir -p {inside}; mount --bind {source} {inside}"
        needed = [REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), *programs]
        for hidden in {top for top in map(_hidden, needed) if top}:
            yield f"mount -t tmpfs -o mode=755 none {root}{hidden}"
        for each in needed:
            if _hidden(each) or any(each.is_relative_to(path) for path in mounts):
                yield f"mkdir -p {root}{each}; mount --bind {each} {root}{each}"
        if security["readOnlyRootFilesystem"]:
            yield f"mount -o remount,bind,ro {root}"
        assert security["capabilities"] == {"drop": ["ALL"]}
        who = f"--reuid={security['runAsUser']} --regid={security['runAsGroup']} --groups={security['fsGroup']}"
        without = "--inh-caps=-all --bounding-set=-all --no-new-privs"
        yield f"exec chroot {root} setpriv {who} {without} {shlex.join(command)}"

    def _environment(self, container: JSON) -> dict[str, str]:
        server, port = self._machine.plane.commandlines.url("kube-apiserver").removeprefix("http://").split(":")
        found = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KUBERNETES_SERVICE_HOST": server,
            "KUBERNETES_SERVICE_PORT": port,
        }
        fields = {"status.podIP": self.address, "metadata.name": self.name}
        for each in container.get("env", ()):
            source = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            found[each["name"]] = each.get("value") or fields[source]
        return found

    def _volume(self, volume: JSON) -> Path:
        """A folder with the content of a volume."""
        folder = self._folder / f"volume-{volume['name']}"
        folder.mkdir()
        namespace = self._pod["metadata"]["namespace"]
        if "configMap" in volume:
            found = self._machine.raw(f"/api/v1/namespaces/{namespace}/configmaps/{volume['configMap']['name']}")
            content = {name: text.encode() for name, text in (found.get("data") or {}).items()}
        elif "secret" in volume:
            content = self._secret(volume["secret"])
        else:
            assert "emptyDir" in volume, volume
            content = {}
        for name, value in content.items():
            _put(folder / name, value)
        os.chown(folder, 0, _USER)
        folder.chmod(0o2775)
        return folder

    def _secret(self, source: JSON) -> dict[str, bytes]:
        """The files of a Secret's volume: all its keys, or the items that the volume names, under their paths."""
        namespace = self._pod["metadata"]["namespace"]
        path = f"/api/v1/namespaces/{namespace}/secrets/{source['secretName']}"
        try:
            data = self._machine.raw(path).get("data") or {}
        except NotFound:
            if not source.get("optional"):
                raise
            data = {}
        items = {each["key"]: each["path"] for each in source.get("items", ())} or {key: key for key in data}
        missing = items.keys() - data.keys()
        assert source.get("optional") or not missing, f"a kubelet would wait for {missing}"
        return {place: base64.b64decode(data[key]) for key, place in items.items() if key in data}

    def _token(self) -> Path:
        """The folder that every container finds: a token that dies with the pod, and the cluster's authority."""
        meta, folder = self._pod["metadata"], self._folder / "token"
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_LIFE_S, "boundObjectRef": bound},
        }
        account = self._pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
        answer = json.loads(self._machine.client.request("POST", path, body=json.dumps(asked).encode()))
        folder.mkdir(mode=0o755)
        (folder / "token").write_text(answer["status"]["token"])
        (folder / "namespace").write_text(meta["namespace"])
        (folder / "ca.crt").write_bytes((self._machine.plane.root / "pki" / "ca.crt").read_bytes())
        return folder


def _put(file: Path, content: bytes) -> None:
    """A file that the containers' group may read, and nobody sees half."""
    whole = file.with_name(f"..{file.name}")
    whole.write_bytes(content)
    os.chown(whole, 0, _USER)
    whole.chmod(0o440)
    whole.replace(file)


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """References as the kubelet resolves them."""
    return re.sub(r"\$\((\w+)\)", lambda match: environment[match[1]], text)


def _hidden(path: Path) -> Path | None:
    """The highest folder above the path that only its owner may enter."""
    above = [*reversed(path.parents)]
    return next((each for each in above if not stat.S_IMODE(each.stat().st_mode) & stat.S_IXOTH), None)


def _trusting() -> SSLContext:
    """A kubelet does not check certificates of those it probes."""
    context = create_default_context()
    context.check_hostname = False
    context.verify_mode = CERT_NONE
    return context
