"""The chart in tests: its values in many combinations, and what it renders."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from muster.chart import CHART
from musterctl.chart.files import render

JSON = dict[str, Any]
NAMESPACE: Final = "muster-system"
CRD: Final = "CustomResourceDefinition"
CA: Final = """\
-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUGRZMrFMc3+bFFHkr4QWI8fwVDZAwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAeFw0yNjEyMDEwMjM5MTVaFw0zNjExMjgwMjM5MTVa
MA8xDTALBgNVBAMMBHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT4WciZ
r/hq6pKz81h9FOpJEHb6IkWnK+B/XqQWlyCHIw1Hjlbuo9k1vpIuRlNjBnRzxHBS
ee+iYTH/7t6rMO09o1MwUTAdBgNVHQ4EFgQUniuSInlmIDm1iTf4TT3QZwZAlbcw
HwYDVR0jBBgwFoAUniuSInlmIDm1iTf4TT3QZwZAlbcwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiEA7NhbdCxjemJiMVKokwgWSxgRckcqYL1TM5cS
JEogQc8CIFmgKZxpyuaspUqAN05vsqJ9ueGAfiXYhhNrWCYEvuoI
-----END CERTIFICATE-----
"""
GROUPS: Final = [
    {"resourceGroup": "research", "object": {"key": "namespace", "value": ["lab", "a-lab"]}, "labels": {"pool": "r"}},
    {"resourceGroup": "paid", "object": {"key": "annotation", "value": ["tier: gold", 'paid: "true"']},
        "labels": {"p": "1"}},
    {"resourceGroup": "own", "tolerations": [{"key": "own", "operator": "Exists"}]},
]  # fmt: skip
_POD: Final[JSON] = {
    "podAnnotations": {"example.com/note": "yes"},
    "podLabels": {"team": "batch"},
    "priorityClassName": "",
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
    "extraEnv": [{"name": "MUSTER_LOG", "value": "console"}],
}  # fmt: skip

MATRIX: Final[dict[str, JSON]] = {
    "defaults": {},
    "only the webhook": {"scheduler": {"mode": "none"}, "controller": {"enabled": False},
        "certificates": {"mode": "certManager"}},
    "the cluster's own scheduler": {"scheduler": {"mode": "cluster"}},
    "no webhook": {"webhook": {"enabled": False}},
    "cert-manager and metrics": {"certificates": {"mode": "certManager"},
        "metrics": {"serviceMonitors": True, "rules": True, "dashboard": True, "labels": {"release": "prometheus"}}},
    "an issuer": {"certificates": {"mode": "certManager",
        "certManager": {"issuerRef": {"kind": "ClusterIssuer", "name": "ca"}}}},
    "a certificate of one's own": {"certificates": {"mode": "provided", "caBundle": CA, "secretName": "tls"}},
    "node pools": {"pools": [{"name": "b", "replicas": 1, "config": {"actions": "enqueue, allocate"}},
        {"name": "1", "schedulerResources": {"limits": {"memory": "1Gi"}}, "extenderResources": {}}],
        "metrics": {"serviceMonitors": True, "rules": True}},
    "one replica": {part: {"replicas": 1} for part in ("webhook", "scheduler", "controller")},
    "nothing that others may have made": {"crds": {"enabled": False}, "rbac": {"create": False, "users": False},
        "policies": {"enabled": False}, "runtimes": {"enabled": False}, "networkPolicies": {"enabled": False}},
    "some CRDs, some secrets, some runtimes": {"crds": {"exclude": ["jobs.batch.volcano.sh"], "keep": False},
        "rbac": {"secretNamespaces": ["default", "kube-public"], "aggregate": False},
        "runtimes": {"exclude": ["plain"]}, "queues": [{"name": "research", "spec": {"weight": 3, "parent": "root"}},
        {"name": "plain"}]},
    "pods as people want them": {
        "image": {"registry": "registry.example.com:5000/", "digest": "sha256:" + "0" * 64},
        "imagePullSecrets": [{"name": "pull"}],
        "commonLabels": {"owner": "platform"},
        "webhook": {
            **_POD,
            "extraSettings": {"clientCaFile": "/etc/ca.crt"},
            "excludedNamespaces": ["gatekeeper"],
            "timeoutSeconds": 5,
        },
        "scheduler": {
            **_POD,
            "extraArgs": ["--profiling=false"],
            "image": {"tag": "v1.33.1"},
            "podDisruptionBudget": {"maxUnavailable": "50%"},
        },
        "controller": {**_POD, "extraSettings": {"certLifetime": "1000h"}, "podDisruptionBudget": {"enabled": False}},
        "extender": {"extraSettings": {"growthDelay": 2}, "config": {"actions": "enqueue, allocate"}, "port": 8090},
    },
    "resource groups, peers and traces": {"traces": {"endpoint": "http://collector.observability.svc:4318"},
        "webhook": {"resourceGroups": GROUPS}, "extender": {"config": 'actions: "enqueue, allocate"\n',
        "stalenessGraceSeconds": -1}, "networkPolicies": {"apiServer": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "monitoring": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]}},
    "trainers that report": {"trainJobs": {"versionNamespace": "kube-public", "reports": {"enabled": True}}},
    "trainers that report, and an issuer": {"certificates": {"mode": "certManager",
        "certManager": {"issuerRef": {"kind": "ClusterIssuer", "name": "ca"}}},
        "trainJobs": {"reports": {"enabled": True, "secretName": "reports"}}},
    "kube-scheduler over TLS": {"extender": {"tls": {"enabled": True, "existingSecret": "extender",
        "existingClientSecret": "client"}}},
    "the page behind a proxy, and an issuer": {"web": {**_POD, "enabled": True, "forwardedTokens": True,
        "secretName": "page", "from": [{"podSelector": {"matchLabels": {"app": "oauth2-proxy"}}}]},
        "certificates": {"mode": "certManager"}},
    "a history that ends with its pod": {"web": {"enabled": True}, "history": {"enabled": True}},
    "a history on a volume, without the page": {"history": {"enabled": True, "storage": {"size": "10Gi"}}},
    "a history in PostgreSQL": {"web": {"enabled": True, "replicas": 2},
        "history": {"enabled": True, "database": {"existingSecret": "history"}}, "metrics": {"serviceMonitors": True}},
    "webhook on the node's network": {"webhook": {"hostNetwork": True}},
    "small nodes": yaml.safe_load((CHART / "values-small.yaml").read_text(encoding="utf-8")),
    "anyone opts out": {"webhook": {"optOut": "anyone"}},
    "API servers that show a certificate": {"webhook": {"clientCA": {"pem": CA}}},
    "their authority in a ConfigMap": {"webhook": {"clientCA": {"configMap": "api-servers"}}},
    "their authority in a Secret": {"webhook": {"clientCA": {"secret": "api-servers"}}},
}  # fmt: skip
"""Values that people choose, by what they want with them."""


def objects(text: str) -> list[JSON]:
    """The objects in rendered manifests."""
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def text(values: JSON, namespace: str = NAMESPACE) -> str:
    """The chart rendered with these values."""
    return _text(yaml.safe_dump(values), namespace)


def rendered(values: JSON, namespace: str = NAMESPACE) -> list[JSON]:
    """The objects of that."""
    found: list[JSON] = json.loads(_as_json(yaml.safe_dump(values), namespace))
    return found


def without_crds(manifests: str) -> str:
    """Rendered manifests but for the CRDs, which are megabytes."""
    return "\n---\n".join(each for each in manifests.split("\n---\n") if f"\nkind: {CRD}\n" not in f"\n{each}\n")


def one(found: list[JSON], kind: str, name: str) -> JSON:
    """The object of that kind and name."""
    return next(each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name))


@cache
def _as_json(values: str, namespace: str) -> str:
    """Objects as JSON, which is read many times as fast."""
    return json.dumps(objects(_text(values, namespace)))


@cache
def _text(values: str, namespace: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.yaml"
        file.write_text(values, encoding="utf-8")
        return render(namespace=namespace, values=[file])
