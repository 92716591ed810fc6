"""Random clusters and pods that use every predicate, and what kube-scheduler says of them.

The oracle is a stock kube-scheduler whose extender is the test: kube-scheduler asks an extender about the nodes that
all of its own filters left, so one scheduling attempt per pod tells the whole set of nodes where it would bind. The
extender refuses them all, so that nothing is ever bound. The scheduler is started after the objects are there, so that
its caches are whole before the first attempt.
"""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any, Self

import yaml

from musterctl.plane import binaries
from musterctl.plane.plane import Plane

TRIAL = "trial"
ZONE, RACK, HOST = "topology.kubernetes.io/zone", "example.com/rack", "kubernetes.io/hostname"
KEYS = (ZONE, RACK, HOST)
GPU = "example.com/gpu"
Object = dict[str, Any]


class Generator:
    """Objects of one world; names carry its number, so that worlds can follow each other on one plane."""

    def __init__(self, chance: Random, number: int) -> None:
        self._chance = chance
        self.number = number
        self._eagerness = 1.0
        self.namespaces = [f"w{number}-{name}" for name in ("red", "blue")]

    def often(self, probability: float) -> bool:
        """True with this probability; that of a pod's demands depends on the pod."""
        return self._chance.random() < probability * self._eagerness

    def one(self, *options: Any) -> Any:
        """One of them."""
        return self._chance.choice(options)

    def namespace_objects(self) -> list[Object]:
        """The namespaces, told apart by a label."""
        return [
            {"metadata": {"name": name, "labels": {"team": name.rpartition("-")[2], "world": str(self.number)}}}
            for name in self.namespaces
        ]

    def node(self, index: int) -> Object:
        """A node with some labels, taints and amounts."""
        name = f"w{self.number}-node-{index}"
        labels = {HOST: name, "example.com/gen": str(self._chance.randint(1, 5))}
        if self.often(0.85):
            labels[ZONE] = self.one("a", "b", "c")
        if self.often(0.85):
            labels[RACK] = self.one("r1", "r2", "r3", "r4")
        if self.often(0.5):
            labels["disk"] = self.one("ssd", "hdd")
        taints = [
            {"key": self.one("dedicated", "maintenance"), "value": self.one("", "x", "y"), "effect": effect}
            for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")
            if self.often(0.12)
        ]
        amounts = {
            "cpu": self.one("2", "4", "8"), "memory": self.one("4Gi", "16Gi"), "pods": self.one("3", "10", "110"),
            "ephemeral-storage": "100Gi", "hugepages-2Mi": self.one("0", "64Mi"),
        }  # fmt: skip
        if self.often(0.5):
            amounts[GPU] = self.one("1", "4")
        return {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints, "unschedulable": self.often(0.1)},
            "status": {"capacity": amounts, "allocatable": amounts},
        }  # fmt: skip

    def pod(self, name: str) -> Object:
        """A pod with a random choice of demands."""
        self._eagerness = self.one(0.2, 0.5, 1.0)  # pods with few demands tell more of each of them
        port = self.one(80, 81)
        spec: Object = {"containers": [self._container("main", port)], "terminationGracePeriodSeconds": 30}
        if self.often(0.2):
            spec["containers"].append(self._container("second", 161 - port))
        if self.often(0.2):
            sidecar = {"restartPolicy": "Always"} if self.often(0.5) else {}
            spec["initContainers"] = [self._container("first", 82) | sidecar, self._container("next", 83)]
        if self.often(0.1):
            spec["resources"] = {"requests": {"cpu": "8", "memory": "16Gi"}}
        if self.often(0.1):
            spec["runtimeClassName"] = "heavy"
        self._add_demands(spec)
        self._eagerness = 1.0
        labels = {"app": self.one("web", "db", "cache"), "tier": self.one("1", "2")}
        return {"metadata": {"name": name, "namespace": self.one(*self.namespaces), "labels": labels}, "spec": spec}

    def _add_demands(self, spec: Object) -> None:
        """What the pod wants of its node and its neighbours."""
        if self.often(0.1):
            spec["hostNetwork"] = True
        if self.often(0.15):
            spec["nodeSelector"] = {"disk": "ssd"}
        if self.often(0.4):
            spec["tolerations"] = [self._toleration() for _ in range(self._chance.randint(1, 2))]
        if self.often(0.3):
            constraints = [self._spread() for _ in range(self._chance.randint(1, 2))]
            spec["topologySpreadConstraints"] = list({one["topologyKey"]: one for one in constraints}.values())
        if self.often(0.25):
            spec["volumes"] = [
                {"name": f"v{n}", "persistentVolumeClaim": {"claimName": self._claim_name()}}
                for n in range(self._chance.randint(1, 2))
            ]
        affinity = self._affinity()
        if affinity:
            spec["affinity"] = affinity

    def storage(self) -> tuple[list[Object], list[Object]]:
        """Volumes, and the claims of both namespaces; some are bound, one is nobody's, one may be used once."""
        volumes, claims = [], []
        for namespace in self.namespaces:
            for name in ("bound-0", "bound-1", "once"):
                volume = f"{namespace}-{name}"
                volumes.append(self._volume(volume))
                claims.append(self._claim(namespace, name, "fast", volume, "Once" if name == "once" else "Many"))
            claims.append(self._claim(namespace, "lost-volume", "fast", f"{namespace}-nowhere", "Many"))
            claims.append(self._claim(namespace, "pending", "fast", "", "Many"))
            claims.append(self._claim(namespace, "lazy", "lazy", "", "Many"))
        return volumes, claims

    def _claim_name(self) -> str:
        if self.often(0.75):
            return str(self.one("bound-0", "bound-1", "once", "lazy"))
        return str(self.one("lost-volume", "pending", "missing"))

    def _volume(self, name: str) -> Object:
        labels = {ZONE: self.one("a", "b", "a__b")} if self.often(0.3) else {}
        spec: Object = {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
            "storageClassName": "fast", "csi": {"driver": "example.com", "volumeHandle": name},
        }  # fmt: skip
        if self.often(0.6):
            terms = [{"matchExpressions": [self._node_requirement()]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _claim(self, namespace: str, name: str, storage_class: str, volume: str, use: str) -> Object:
        spec: Object = {
            "accessModes": ["ReadWriteOncePod" if use == "Once" else "ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": storage_class,
        }  # fmt: skip
        annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
        if volume:
            spec["volumeName"] = volume
        return {"metadata": {"name": name, "namespace": namespace, "annotations": annotations}, "spec": spec}

    def _container(self, name: str, number: int) -> Object:
        requests: Object = {}
        limits: Object = {}
        if self.often(0.7):
            requests["cpu"] = self.one("100m", "0.5", "1", "2")
        if self.often(0.5):
            requests["memory"] = self.one("128Mi", "1Gi", "3Gi")
        if self.often(0.2):
            limits |= {"cpu": "2", "memory": "4Gi"}
        if self.often(0.15):
            limits[GPU] = self.one("1", "2")
        if self.often(0.1):
            requests["ephemeral-storage"] = self.one("1Gi", "60Gi")
        if "cpu" in requests and self.often(0.1):
            limits["hugepages-2Mi"] = "32Mi"
        container: Object = {"name": name, "image": "none", "resources": {"requests": requests, "limits": limits}}
        if self.often(0.15):
            port: Object = {"containerPort": number, "hostPort": number, "protocol": self.one("TCP", "TCP", "UDP")}
            if self.often(0.4):
                port["hostIP"] = self.one("127.0.0.1", "10.0.0.1", "0.0.0.0")  # noqa: S104 - the case to be tested
            container["ports"] = [port]
        return container

    def _toleration(self) -> Object:
        if self.often(0.2):
            return {"operator": "Exists"}
        toleration: Object = {"key": self.one("dedicated", "maintenance", "node.kubernetes.io/unschedulable")}
        toleration |= {"operator": "Exists"} if self.often(0.5) else {"operator": "Equal", "value": self.one("", "x")}
        return toleration | ({"effect": self.one("NoSchedule", "NoExecute")} if self.often(0.5) else {})

    def _selector(self) -> Object | None:
        if self.often(0.1):
            return self.one(None, {})  # type: ignore[no-any-return]
        if self.often(0.6):
            return {"matchLabels": {"app": self.one("web", "db", "cache")}}
        key = self.one("app", "tier", "none")
        operator = self.one("In", "NotIn", "Exists", "DoesNotExist")
        values = {"values": [self.one("web", "1"), "2"]} if operator in {"In", "NotIn"} else {}
        return {"matchExpressions": [{"key": key, "operator": operator, **values}]}

    def _spread(self) -> Object:
        constraint: Object = {
            "maxSkew": self.one(1, 1, 2), "topologyKey": self.one(*KEYS),
            "whenUnsatisfiable": self.one("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"),
        }  # fmt: skip
        selector = self._selector()
        if selector is not None:
            constraint["labelSelector"] = selector
            if self.often(0.2):
                constraint["matchLabelKeys"] = ["none"] if "tier" in json.dumps(selector) else ["tier"]
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and self.often(0.2):
            constraint["minDomains"] = self.one(1, 3, 5)
        if self.often(0.3):
            constraint["nodeAffinityPolicy"] = self.one("Honor", "Ignore")
        if self.often(0.3):
            constraint["nodeTaintsPolicy"] = self.one("Honor", "Ignore")
        return constraint

    def _affinity(self) -> Object:
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        affinity: Object = {}
        if self.often(0.25):
            terms = [self._node_term() for _ in range(self._chance.randint(1, 2))]
            affinity["nodeAffinity"] = {required: {"nodeSelectorTerms": terms}}
        if self.often(0.2):
            affinity["podAffinity"] = {required: [self._pod_term() for _ in range(self._chance.randint(1, 2))]}
        if self.often(0.25):
            affinity["podAntiAffinity"] = {required: [self._pod_term() for _ in range(self._chance.randint(1, 2))]}
        return affinity

    def _node_term(self) -> Object:
        if self.often(0.1):
            name = f"w{self.number}-node-{self._chance.randint(0, 5)}"
            return {"matchFields": [{"key": "metadata.name", "operator": self.one("In", "NotIn"), "values": [name]}]}
        return {"matchExpressions": [self._node_requirement() for _ in range(self._chance.randint(1, 2))]}

    def _node_requirement(self) -> Object:
        operator = self.one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        if operator in {"Gt", "Lt"}:
            return {"key": self.one("example.com/gen", ZONE), "operator": operator, "values": [self.one("2", "3")]}
        key = self.one(ZONE, RACK, "disk")
        values = {"values": [self.one("a", "r1", "ssd"), self.one("b", "r2")]} if operator in {"In", "NotIn"} else {}
        return {"key": key, "operator": operator, **values}

    def _pod_term(self) -> Object:
        term: Object = {"topologyKey": self.one(*KEYS)}
        selector = self._selector()
        if selector is not None:
            term["labelSelector"] = selector
            if "app" in json.dumps(selector) and self.often(0.2):
                term[self.one("matchLabelKeys", "mismatchLabelKeys")] = ["tier"]
        if self.often(0.25):
            term["namespaces"] = [self.one(*self.namespaces)]
        if self.often(0.25):
            term["namespaceSelector"] = self.one({}, {"matchLabels": {"team": "red", "world": str(self.number)}})
        return term


class Oracle:
    """Records, per pod UID, the nodes that kube-scheduler's own filters left."""

    def __init__(self) -> None:
        self.left: dict[str, set[str]] = {}
        oracle = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                nodes = call["NodeNames"] or []
                oracle.left[call["Pod"]["metadata"]["uid"]] = set(nodes)
                body = json.dumps({"FailedNodes": dict.fromkeys(nodes, "only a trial")}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def trial_scheduler(plane: Plane, oracle: Oracle, folder: Path) -> Iterator[None]:
    """A stock kube-scheduler for pods of the scheduler `trial`, which asks the oracle last."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.kubeconfig), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False}, "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": TRIAL, "plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}],
        "extenders": [{"urlPrefix": oracle.url, "filterVerb": "filter", "nodeCacheCapable": True, "weight": 1}],
    }  # fmt: skip
    path = folder / "trial-scheduler.yaml"
    path.write_text(yaml.safe_dump(config))
    binary = binaries.find_programs(("kube-scheduler",))["kube-scheduler"]
    log = (folder / "trial-scheduler.log").open("a")
    process = subprocess.Popen([binary, f"--config={path}", "--secure-port=0"], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)
        log.close()


def judged(pod: Any) -> bool:
    """Whether kube-scheduler has answered."""
    return any(condition.type == "PodScheduled" and condition.status == "False" for condition in pod.status.conditions)
