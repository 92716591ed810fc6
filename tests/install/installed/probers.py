"""Pods that tell what they reach, and what Muster's pods can be reached at."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from installed.chart import Pod, Release
from installed.cluster import COUNT, Cluster
from installed.work import Work

PORT: Final = 8000
"""Where each of these pods answers."""
LISTENS_S: Final = 300.0
"""How long a port may take: that for reports waits for its certificate, which kubelets bring within two minutes."""
_CONNECT: Final = """\
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def reached(target):
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError:
        return False
    return True
with ThreadPoolExecutor(16) as pool:
    print(json.dumps(list(pool.map(reached, sys.argv[1:]))))
"""
_LISTEN: Final = """\
import socket, sys
server = socket.create_server(("", int(sys.argv[1])))
print("listens", flush=True)
sys.stdin.read()
"""
_SOCKETS: Final = "print(open('/proc/net/tcp').read(), open('/proc/net/tcp6').read())"
_LISTENS: Final = "0A"
"""The state of a socket that listens, in /proc/net/tcp."""
_LOOPBACK: Final = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
"""127.0.0.1, ::1 and the first as an address of IPv6, as the kernel writes them there."""


class Probers:
    """A pod on each node, in a namespace of theirs which is made now."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self.work = Work(cluster, namespace)
        self.work.submit("probers")
        cluster.wait(f"the pods of {namespace} run", lambda: len(self._running()) == COUNT)

    def targets(self) -> dict[str, str]:
        """Where they answer themselves: address and port, by node."""
        return {pod["spec"]["nodeName"]: f"{pod['status']['podIP']}:{PORT}" for pod in self._running()}

    def wait_reach(self, targets: Mapping[str, str], expected: set[str]) -> None:
        """Returns when the pods on all nodes reach these of the targets (address and port by name), and no others."""
        seen: dict[str, set[str]] = {}

        def right() -> bool:
            seen.update({pod["spec"]["nodeName"]: reached(self._cluster, pod, targets) for pod in self._running()})
            return set(seen) == {node.name for node in self._cluster.nodes} and all(
                each == expected for each in seen.values()
            )

        try:
            self._cluster.wait(f"{self.work.namespace} reaches {sorted(expected)}", right, timeout_s=30)
        except Exception as error:
            wrong = {node: sorted(each ^ expected) for node, each in seen.items()}
            error.add_note(f"these are reached and should not be, or the other way round, by node: {wrong}")
            raise

    def remove(self) -> None:
        """Deletes their namespace, and does not wait for its end."""
        self.work.remove()

    def _running(self) -> list[Pod]:
        return [pod for pod in self.work.pods("prober") if pod["status"]["phase"] == "Running"]


def reached(cluster: Cluster, pod: Pod, targets: Mapping[str, str]) -> set[str]:
    """Those of the targets (address and port by name) to which a pod with Python can connect."""
    answer = _python(cluster, pod, _CONNECT, *targets.values())
    return {name for name, opened in zip(targets, json.loads(answer), strict=True) if opened}


def doors(release: Release) -> dict[str, str]:
    """Address and port of every port that Muster's pods declare, as `part/port on node`."""
    found = {}
    for pod in release.pods():
        part, node = pod["metadata"]["labels"]["app.kubernetes.io/component"], pod["spec"]["nodeName"]
        for name, port in declared(pod).items():
            found[f"{part}/{name} on {node}"] = f"{pod['status']['podIP']}:{port}"
    return found


def declared(pod: Pod) -> dict[str, int]:
    """The ports that a pod's containers declare, by name."""
    return {port["name"]: port["containerPort"] for each in pod["spec"]["containers"] for port in each.get("ports", ())}


def wait_listens(cluster: Cluster, pod: Pod) -> None:
    """Returns when a pod of Muster's listens for others than itself at all ports that it declares, and at no others."""
    ports = set(declared(pod).values())
    name = pod["metadata"]["name"]
    cluster.wait(f"{name} listens at {ports}", lambda: _listening(cluster, pod) == ports, LISTENS_S)


def _listening(cluster: Cluster, pod: Pod) -> set[int]:
    rows = (line.split() for line in _python(cluster, pod, _SOCKETS).splitlines())
    ends = (row[1].split(":") for row in rows if len(row) > 3 and row[3] == _LISTENS)
    return {int(port, 16) for address, port in ends if address not in _LOOPBACK}


@contextmanager
def listener(cluster: Cluster, pod: Pod, port: int) -> Iterator[str]:
    """Something that listens in a pod of Muster's as long as the `with` statement lasts; its address and port."""
    command = [*_exec(cluster, pod), "--stdin", "--", "python", "-c", _LISTEN, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"listens\n", "it could not listen"
        yield f"{pod['status']['podIP']}:{port}"
        process.stdin.close()


def _python(cluster: Cluster, pod: Pod, script: str, *arguments: str) -> str:
    """What a script says that runs in a pod's container with Python."""
    command = [*_exec(cluster, pod), "--", "python", "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _exec(cluster: Cluster, pod: Pod) -> list[str]:
    names = [each["name"] for each in pod["spec"]["containers"]]
    container = next(name for name in names if name != "kube-scheduler")  # that has no Python
    where: dict[str, Any] = pod["metadata"]
    return cluster.plane.kubectl_command(
        "exec", f"--namespace={where['namespace']}", where["name"], f"--container={container}"
    )
