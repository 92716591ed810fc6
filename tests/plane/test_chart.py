"""The chart: what it renders is accepted by a real API server, and says what the code says."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from charts import CA, CRD, GROUPS, JSON, MATRIX, NAMESPACE, objects, one, rendered, text, without_crds
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES
from muster.chart import CHART
from muster.resources.quantity import parse as amount
from musterctl import settings
from musterctl.app import main
from musterctl.chart import roles
from musterctl.chart.files import RESTRICTED, helm, policies
from musterctl.plane.plane import Plane
from musterctl.plane.rights import CLUSTER_LEASE
from webhook.config import parse
from webhook.registration import configurations

pytestmark = [pytest.mark.plane, pytest.mark.long]

FOREIGN = (
    ("monitoring.coreos.com", "servicemonitors", "ServiceMonitor"),
    ("monitoring.coreos.com", "prometheusrules", "PrometheusRule"),
    ("cert-manager.io", "issuers", "Issuer"),
    ("cert-manager.io", "certificates", "Certificate"),
)
"""Kinds of others that the chart makes objects of, if it is asked to."""
DEFINITIONS: Resource[JSON] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict[str, Any],
    namespaced=False
)  # fmt: skip
WORKLOADS = ("Deployment", "DaemonSet")


def foreign(group: str, plural: str, kind: str) -> JSON:
    """A kind of somebody else's that takes everything."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "kind": kind, "singular": kind.lower()}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


@pytest.fixture(scope="module")
def cluster(module_plane: Callable[..., Plane], wait_for: Callable[..., Any]) -> Iterator[Plane]:
    """An API server with a namespace that enforces the Pod Security Standard `restricted`."""
    plane = module_plane(("etcd", "kube-apiserver"))
    client = plane.client()
    client.apply(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": RESTRICTED}})
    plane.kubectl("create", "priorityclass", "muster", "--value=1000000000", "--preemption-policy=Never")
    for each in FOREIGN:
        client.apply(DEFINITIONS, foreign(*each))
    for group, _, kind in FOREIGN:
        wait_for(lambda g=group, k=kind: f" {k}\n" in plane.kubectl("api-resources", f"--api-group={g}").stdout)
    yield plane
    client.close()


def test_lint_is_strict() -> None:
    """Helm finds nothing to complain about."""
    result = helm("lint", "--strict", str(CHART), f"--namespace={NAMESPACE}")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", MATRIX)
def test_every_object_is_accepted(cluster: Plane, name: str) -> None:
    """By the API server, field by field, and without a warning; pods by the namespace's standard, too.

    CRDs that are those of the defaults are tried with the defaults only.
    """
    found, manifests = rendered(MATRIX[name]), text(MATRIX[name])
    if name != "defaults" and crds(found) == crds(rendered({})):
        found, manifests = [each for each in found if each["kind"] != CRD], without_crds(manifests)
    on_the_host = [each for each in found if "hostNetwork" in json.dumps(each)]
    result = cluster.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-", "--output=json"),
        "--force-conflicts",  # the plane has applied some of these objects itself
        stdin=manifests,
    )
    lines = [line for line in result.stderr.splitlines() if "violate PodSecurity" not in line or not on_the_host]
    assert (result.returncode, lines) == (0, []), result.stderr
    stored = {key(each): each for each in json.loads(result.stdout)["items"]}
    assert len(stored) == len(found)
    assert [*chain(*(lost(each, stored[key(each)], str(key(each))) for each in found))] == []
    for workload in found:
        if workload["kind"] in WORKLOADS and workload not in on_the_host:
            pod = {**workload["spec"]["template"], "apiVersion": "v1", "kind": "Pod"}
            pod["metadata"] = {**pod["metadata"], "name": "try", "namespace": NAMESPACE}
            tried = cluster.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod))
            assert (tried.returncode, tried.stderr) == (0, "")


def lost(rendered: Any, stored: Any, at: str) -> Iterator[str]:
    """The fields that are not stored as they are rendered: a GitOps tool finds a difference in each comparison."""
    if isinstance(rendered, dict) and isinstance(stored, dict):
        for name, each in rendered.items():
            yield from lost(each, stored.get(name), f"{at}.{name}")
    elif isinstance(rendered, list) and isinstance(stored, list) and len(rendered) == len(stored):
        for number, (one_of, other) in enumerate(zip(rendered, stored, strict=True)):
            yield from lost(one_of, other, f"{at}[{number}]")
    elif rendered != stored:
        yield f"{at}: {rendered!r} is stored as {stored!r}"


def test_kubectl_takes_over_from_helm_and_back(cluster: Plane) -> None:
    """Without force: lists and objects that are compared as a whole are rendered with their defaults.

    It cleans up what it has made, as others try the same objects with other values; the fixture's objects stay.
    """
    manifests = without_crds(text(MATRIX["cert-manager and metrics"]))
    for manager in ("helm", "kubectl", "helm"):
        arguments = ("apply", "--server-side", f"--field-manager={manager}", "--filename=-")
        result = cluster.kubectl(*arguments, stdin=manifests)
        assert (result.returncode, re.findall(r"(?m)^.*conflict.* with .*$|^- \\..*$", result.stderr)) == (0, [])
    made = [
        each for each in yaml.safe_load_all(manifests) if each and each["kind"] not in {"Namespace", "PriorityClass"}
    ]
    cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "--filename=-", stdin=yaml.safe_dump_all(made))


def test_the_namespace_enforces_the_standard(cluster: Plane) -> None:
    """So that the test above can fail: a pod that may become root is refused there."""
    pod = one(rendered({}), "Deployment", "muster-webhook")["spec"]["template"]
    del pod["spec"]["securityContext"]["runAsNonRoot"]
    pod |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "try", "namespace": NAMESPACE}}
    tried = cluster.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod))
    assert 'violates PodSecurity "restricted' in tried.stderr


@pytest.mark.parametrize("name", MATRIX)
def test_no_container_can_write_its_root(name: str) -> None:
    """Nor become more than it is."""
    for workload in rendered(MATRIX[name]):
        for container in workload.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert container["resources"]["limits"]["memory"]


def crds(found: list[JSON]) -> list[JSON]:
    """The CRDs among objects."""
    return [each for each in found if each["kind"] == CRD]


def bare(each: JSON) -> JSON:
    """An object without the labels of the chart."""
    labels = {key: value for key, value in each["metadata"].get("labels", {}).items() if key.startswith("rbac.")}
    metadata = {key: value for key, value in each["metadata"].items() if key != "labels"}
    return {**each, "metadata": metadata | ({"labels": labels} if labels else {})}


def key(each: JSON) -> tuple[str, str, str]:
    """What tells objects apart."""
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]


@pytest.mark.parametrize("mode", ["muster", "cluster"])
def test_roles_are_those_of_planes(mode: str) -> None:
    """`muster up` and tests have the rights that the chart grants; planes keep no certificates, and all may opt out."""
    accounts = {**roles.ACCOUNTS} if mode == "muster" else {**roles.ACCOUNTS, roles.SCHEDULER: roles.OWN_EXTENDER}
    lease = CLUSTER_LEASE if mode == "cluster" else None
    wanted = [*roles.objects(NAMESPACE, list(accounts.values()), lease), *policies()]
    kinds = {each["kind"] for each in wanted}
    values = {"scheduler": {"mode": mode}, "history": {"enabled": True}, "webhook": {"optOut": "anyone"}}
    every = [bare(each) for each in rendered(values) if each["kind"] in kinds]
    settings_of = {key(each) for each in every if each["kind"] == "ConfigMap"} - {key(each) for each in wanted}
    others = [each for each in every if key(each) not in settings_of]
    found = [each for each in others if not each["metadata"]["name"].startswith("muster-certificates")]
    assert {key(each): each for each in found} == {key(each): each for each in wanted}


@pytest.mark.parametrize("groups", [[], GROUPS], ids=["none", "three groups"])
def test_webhooks_are_those_of_the_code(groups: list[JSON]) -> None:
    """With resource groups too, whose conditions the chart writes itself."""
    parsed = parse(yaml.safe_dump({"resourceGroups": groups}))
    wanted = configurations(service=(NAMESPACE, "muster-webhook"), ca_bundle=b"", groups=parsed)
    for each in (webhook for configuration in wanted for webhook in configuration["webhooks"]):
        del each["clientConfig"]["caBundle"]
    found = rendered({"webhook": {"resourceGroups": groups}})
    for configuration in wanted:
        assert one(found, configuration["kind"], "muster")["webhooks"] == configuration["webhooks"]


@pytest.mark.parametrize("name", MATRIX)
def test_processes_understand_their_settings(name: str) -> None:
    """Each file, whatever the values; and their flags are only those that differ from pod to pod."""
    found = rendered(MATRIX[name])
    files = [each["data"]["settings.yaml"] for each in found if "settings.yaml" in each.get("data", {})]
    for each in files:
        settings.check_settings(settings.process_of(each), each)
    commands = [
        container
        for workload in found
        if workload["kind"] in WORKLOADS
        for container in workload["spec"]["template"]["spec"]["containers"]
        if container["name"] in settings.PROCESSES
    ]
    assert len(files) == len(commands)
    for container in commands:
        assert {each for each in container["args"] if "$(POD_IP)" not in each} <= {
            "--settings=/etc/muster/settings/settings.yaml",
            "--host=127.0.0.1",
        }


@pytest.mark.parametrize(("given", "source"), [
    ({"pem": CA}, {"configMap": {"name": "muster-webhook-client-ca"}}),
    ({"configMap": "api-servers"}, {"configMap": {"name": "api-servers"}}),
    ({"secret": "api-servers"}, {"secret": {"secretName": "api-servers", "defaultMode": 0o440}}),
])  # fmt: skip
def test_the_webhook_has_the_authority_of_its_clients(given: JSON, source: JSON) -> None:
    """Its settings name a file in the volume that has it; probes go to the port that asks for no certificate."""
    found = rendered({"webhook": {"clientCA": given}})
    written = yaml.safe_load(one(found, "ConfigMap", "muster-webhook-settings")["data"]["settings.yaml"])
    pod = one(found, "Deployment", "muster-webhook")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {each.pop("name"): each for each in pod["volumes"]}
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    folder, _, file = written["clientCaFile"].rpartition("/")
    volume = volumes[mounts[folder]]
    ((kind, wanted),) = source.items()
    assert volume[kind] == {**wanted, "items": [{"key": "ca.crt", "path": file}]}
    probes = [container[each]["httpGet"]["port"] for each in ("livenessProbe", "readinessProbe", "startupProbe")]
    assert probes == ["status"] * 3
    if "pem" in given:
        assert one(found, "ConfigMap", "muster-webhook-client-ca")["data"] == {"ca.crt": CA}
    without = one(rendered({}), "ConfigMap", "muster-webhook-settings")["data"]["settings.yaml"]
    assert "clientCaFile" not in yaml.safe_load(without)


def test_certificates_are_not_rendered() -> None:
    """No key, no certificate, no caBundle: with GitOps they would change with each rendering."""
    for name in ("defaults", "cert-manager and metrics"):
        assert not [each for each in rendered(MATRIX[name]) if each["kind"] == "Secret"]
        assert "caBundle" not in text(MATRIX[name])


def test_cert_manager_signs_with_an_authority_that_stays() -> None:
    """A self-signed certificate is another authority with each renewal, which nobody trusts for a while."""
    found = rendered(MATRIX["trainers that report"] | {"certificates": {"mode": "certManager"}})
    for name, secret in {"muster-webhook": "muster-webhook-tls", "muster-reports": "muster-reports-tls"}.items():
        spec = one(found, "Certificate", name)["spec"]
        assert (spec["secretName"], spec["issuerRef"]["name"]) == (secret, "muster-webhook")
    authority = one(found, "Certificate", "muster-webhook-ca")["spec"]
    assert one(found, "Issuer", "muster-webhook")["spec"] == {"ca": {"secretName": authority["secretName"]}}
    assert (authority["isCA"], authority["privateKey"]["rotationPolicy"]) == (True, "Never")
    others = rendered(MATRIX["an issuer"])
    assert not [each for each in others if each["kind"] == "Issuer"]
    assert [each["metadata"]["name"] for each in others if each["kind"] == "Certificate"] == ["muster-webhook"]


@pytest.mark.parametrize(("values", "left_out"), [
    ({}, ""),
    ({"webhook": {"enabled": False}}, "muster-webhook"),
    ({"scheduler": {"mode": "none"}}, "muster-scheduler"),
    ({"controller": {"enabled": False}, "certificates": {"mode": "certManager"}}, "muster-controller"),
])  # fmt: skip
def test_no_alert_on_a_part_that_is_left_out(values: JSON, left_out: str) -> None:
    """It would fire for ever, as what it asks for is absent."""
    groups = one(rendered({**values, "metrics": {"rules": True}}), "PrometheusRule", "muster")["spec"]["groups"]
    all_of_them = {"muster-webhook", "muster-scheduler", "muster-controller", "muster-certificates"}
    assert {group["name"] for group in groups} == all_of_them - {left_out}


def test_crds_stay_when_the_release_goes() -> None:
    """Else every Job would go with it; unless somebody says so."""
    for values, kept in (({}, True), ({"crds": {"keep": False}}, False)):
        for each in rendered(values):
            if each["kind"] == "CustomResourceDefinition":
                assert (each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep") is kept
    assert not (CHART / "crds").exists(), "helm would install them from there, and never upgrade them"


def test_another_namespace_is_left_alone_by_the_webhook() -> None:
    """Wherever Muster runs: it must be able to start while its webhook does not answer."""
    for configuration in (each for each in rendered({}, "batch") if each["kind"].endswith("WebhookConfiguration")):
        for webhook in configuration["webhooks"]:
            (outside, *_) = webhook["namespaceSelector"]["matchExpressions"]
            assert {"batch", "kube-system"} <= {*outside["values"]}
            assert webhook["clientConfig"]["service"]["namespace"] == "batch"


WRONG: dict[str, tuple[JSON, str]] = {
    "a name that does not exist": ({"webhok": {}}, "webhok"),
    "arguments of a process of ours": ({"webhook": {"extraArgs": ["--log-level=debug"]}}, "'extraArgs'"),
    "a setting in two places": ({"extender": {"extraSettings": {"port": 1}}},
        "extender.extraSettings.port: this field follows from another value of the chart"),
    "one inside": ({"webhook": {"replica": 2}}, "'replica'"),
    "another type": ({"webhook": {"replicas": "two"}}, "at '/webhook/replicas': got string, want integer"),
    "too few": ({"controller": {"replicas": 0}}, "at '/controller/replicas': minimum: got 0, want 1"),
    "no such mode": ({"scheduler": {"mode": "own"}}, "'muster', 'cluster', 'none'"),
    "a digest that is none": ({"image": {"digest": "latest"}}, "/image/digest"),
    "a barrier longer than a bind": ({"extender": {"barrierTimeoutSeconds": 20}}, "/extender/barrierTimeoutSeconds"),
    "a queue without a name": ({"queues": [{"spec": {}}]}, "missing property 'name'"),
    "TLS for a scheduler that cannot have its certificate": ({"scheduler": {"mode": "cluster"},
        "extender": {"tls": {"enabled": True}}}, "extender.tls.enabled: not with scheduler.mode cluster"),
    "TLS without certificates": ({"extender": {"tls": {"enabled": True, "existingSecret": "extender"}}},
        "extender.tls.enabled: name the Secrets with the certificates in extender.tls.existingSecret and"),
    "two authorities of the webhook's clients": ({"webhook": {"clientCA": {"pem": CA, "secret": "ca"}}},
        "webhook.clientCA: set one of pem, configMap and secret"),
    "own certificates, and nobody to make them": ({"controller": {"enabled": False}}, "set certificates.mode"),
    "provided without a bundle": ({"certificates": {"mode": "provided"}}, "set certificates.caBundle"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused(name: str, tmp_path: Path) -> None:
    """With a message that names the value."""
    values, message = WRONG[name]
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    result = CliRunner().invoke(main, ["render", "-f", str(tmp_path / "values.yaml")])
    assert result.exit_code == 1
    assert message in result.stderr


def test_render_prints_the_same() -> None:
    """And the namespace in front, which kubectl then makes."""
    result = CliRunner().invoke(main, ["render", "--set", "controller.workers=5", "--kubernetes-version", "1.34.2"])
    assert result.exit_code == 0, result.stderr
    namespace, *others = objects(result.stdout)
    assert namespace["metadata"] == {"name": NAMESPACE, "labels": RESTRICTED}
    controller = yaml.safe_load(one(others, "ConfigMap", "muster-controller-settings")["data"]["settings.yaml"])
    assert controller["workers"] == 5
    scheduler = one(others, "Deployment", "muster-scheduler")["spec"]["template"]["spec"]["containers"][0]
    assert scheduler["image"].endswith("/kube-scheduler:v1.34.2")
    assert not result.stderr
    guessed = CliRunner().invoke(main, ["render"]).stderr
    assert "It must not be newer than the API server: give --kubernetes-version" in guessed
    assert not CliRunner().invoke(main, ["render", "--set", "scheduler.image.tag=v1.34.2"]).stderr
    assert "labels" not in objects(text({"scheduler": {"mode": "cluster"}}))[0]["metadata"]


def test_vendors_versions_of_kubernetes_have_an_image() -> None:
    """What they add to the version is not in the tag."""
    result = helm("template", "muster", str(CHART), "--kube-version=v1.35.1-gke.100+k3s1")
    scheduler = one(objects(result.stdout), "Deployment", "muster-scheduler")["spec"]["template"]["spec"]["containers"][
        0
    ]
    assert scheduler["image"].endswith(":v1.35.1")


@pytest.mark.parametrize(
    ("values", "webhook", "controller"),
    [
        ({}, True, True),
        ({"nativePodGroups": False}, False, False),
        ({"controller": {"enabled": False}, "certificates": {"mode": "provided", "caBundle": CA}}, False, None),
        ({"scheduler": {"mode": "cluster"}}, True, False),  # without effect in the webhook, which marks pods then
    ],
    ids=["by default", "switched off", "without the controller", "in a shared kube-scheduler"],
)
def test_gangs_are_published_where_it_helps(values: dict[str, Any], *, webhook: bool, controller: bool | None) -> None:
    """The settings of both processes fit together."""
    made = rendered(values)
    for process, wanted in (("webhook", webhook), ("controller", controller)):
        if wanted is not None:
            settings = yaml.safe_load(one(made, "ConfigMap", f"muster-{process}-settings")["data"]["settings.yaml"])
            assert settings["nativePodGroups"] == wanted


@pytest.mark.parametrize(
    ("cluster", "tag", "known"),
    [("v1.34.9", "", False), ("v1.35.0-rc.1", "", True), ("v1.37.2", "", True), ("v1.37.2", "v1.34.4", False)],
)
def test_kube_scheduler_is_kept_from_gangs_of_its_own(cluster: str, tag: str, *, known: bool) -> None:
    """By a gate, where its version knows that gate; what the user adds comes later, and so counts."""
    more = "--feature-gates=GenericWorkload=true"
    values = [f"--set=scheduler.extraArgs={{{more}}}", *([f"--set=scheduler.image.tag={tag}"] if tag else [])]
    rendered = objects(helm("template", "muster", str(CHART), f"--kube-version={cluster}", *values).stdout)
    (scheduler,) = [
        each
        for each in one(rendered, "Deployment", "muster-scheduler")["spec"]["template"]["spec"]["containers"]
        if each["name"] == "kube-scheduler"
    ]
    gates = [each for each in scheduler["args"] if each.startswith("--feature-gates")]
    assert gates == [*(["--feature-gates=GenericWorkload=false"] if known else []), more]


def test_notes_say_where_the_scheduler_part_goes() -> None:
    """Of a cluster whose own kube-scheduler shall ask Muster."""
    arguments = ("install", "muster", str(CHART), "--dry-run=client", f"--namespace={NAMESPACE}")
    result = helm(*arguments, "--set=scheduler.mode=cluster")
    _, _, notes = result.stdout.partition("NOTES:")
    for needed in ("muster.dev/member", "muster.dev/binding", "/etc/kubernetes/manifests/kube-scheduler.yaml"):
        assert needed in notes, result.stderr
    _, _, configuration = notes.partition("This is the configuration for kube-scheduler:\n")
    assert yaml.safe_load(configuration.partition("\n\nNo history")[0])["kind"] == "KubeSchedulerConfiguration"


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ("history.enabled=false", "budgets of queues are not enforced"),
        ("history.enabled=true", "WARNING: the history has no volume"),
        ("history.enabled=true,history.storage.size=10Gi", ""),
    ],
)
def test_notes_warn_of_a_history_that_is_lost(history: str, words: str) -> None:
    """Of what budgets lack then."""
    arguments = ("install", "muster", str(CHART), "--dry-run=client", f"--namespace={NAMESPACE}", f"--set={history}")
    _, _, notes = helm(*arguments).stdout.partition("NOTES:")
    assert notes
    assert words in notes
    assert ("history" in notes) is bool(words)


@pytest.mark.parametrize(("served", "words"), [((), ""), (("kueue",), "WARNING"), (("kueue", "jobset"), "")])
def test_notes_warn_of_a_kueue_that_would_end_itself(served: tuple[str, ...], words: str, tmp_path: Path) -> None:
    """Kueue's integration of TrainJobs, which come with Muster, does not live without the kind JobSet.

    Only of a cluster does helm show notes, so their words are rendered as a manifest.
    """
    versions = {"kueue": "kueue.x-k8s.io/v1beta2", "jobset": "jobset.x-k8s.io/v1alpha2"}
    assert 'include "muster.kueueWarning"' in (CHART / "templates/NOTES.txt").read_text(encoding="utf-8")
    chart = shutil.copytree(CHART, tmp_path / "muster")
    template = 'words: {{ include "muster.kueueWarning" . | quote }}\n'
    (chart / "templates" / "words.yaml").write_text(template, encoding="utf-8")
    more = [f"--api-versions={versions[each]}" for each in served]
    result = helm("template", "muster", str(chart), "--show-only=templates/words.yaml", *more)
    assert yaml.safe_load(result.stdout)["words"].partition(":")[0] == words


def test_replicas_spread_also_over_nodes_without_a_zone() -> None:
    """One constraint of nodes: beside one of zones its scores would not count there. What leads has none too many."""
    found = rendered({})
    for name in ("controller", "scheduler", "webhook"):
        spec = one(found, "Deployment", f"muster-{name}")["spec"]
        [constraint] = spec["template"]["spec"]["topologySpreadConstraints"]
        assert constraint["topologyKey"] == "kubernetes.io/hostname"
        assert constraint["matchLabelKeys"] == ["pod-template-hash"]
        affinity = spec["template"]["spec"]["affinity"]["podAntiAffinity"]
        [term] = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
        assert term["podAffinityTerm"]["labelSelector"] == constraint["labelSelector"]
        assert spec["strategy"]["rollingUpdate"]["maxSurge"] == (1 if name == "webhook" else 0)


def test_small_nodes_have_room_for_all_of_it() -> None:
    """As the first lines of the file say."""
    containers = [
        (container["resources"]["requests"], each["spec"]["replicas"])
        for each in rendered(MATRIX["small nodes"])
        if each["kind"] == "Deployment"
        for container in each["spec"]["template"]["spec"]["containers"]
    ]
    assert sum(amount(requests["cpu"], milli=True) * count for requests, count in containers) == 360
    assert sum(amount(requests["memory"]) * count for requests, count in containers) == 1280 * 1024**2


def test_a_history_in_a_file_has_one_pod_and_a_volume_that_stays() -> None:
    """The page and the recorder share it, so there is one pod, and the next waits for its end."""
    found = rendered(
        {"web": {"enabled": True, "replicas": 3}, "history": {"enabled": True, "storage": {"size": "9Gi"}}}
    )
    spec = one(found, "Deployment", "muster-web")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    recorder, web = spec["template"]["spec"]["containers"]
    assert {"name": "history", "mountPath": "/var/lib/muster/history"} in recorder["volumeMounts"]
    assert {"name": "history", "mountPath": "/var/lib/muster/history"} in web["volumeMounts"]
    settings = yaml.safe_load(one(found, "ConfigMap", "muster-history-settings")["data"]["settings.yaml"])
    assert {"name": "MUSTER_HISTORY", "value": settings["database"]} in web["env"]
    claim = one(found, "PersistentVolumeClaim", "muster-history")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"]["resources"] == {"requests": {"storage": "9Gi"}}


@pytest.mark.parametrize(("history", "durable"), [
    ({"enabled": False, "storage": {"size": "9Gi"}}, False), ({"enabled": True}, False),
    ({"enabled": True, "storage": {"size": "9Gi"}}, True), ({"enabled": True, "storage": {"existingClaim": "c"}}, True),
    ({"enabled": True, "database": {"existingSecret": "history"}}, True),
])  # fmt: skip
def test_processes_know_whether_the_history_outlives_its_pod(history: dict[str, Any], *, durable: bool) -> None:
    """Budgets are warned of where it does not."""
    found = rendered({"web": {"enabled": True}, "history": history})
    for process in ("webhook", "history") if history["enabled"] else ("webhook",):
        text = one(found, "ConfigMap", f"muster-{process}-settings")["data"]["settings.yaml"]
        assert durable in {yaml.safe_load(text).get("durableHistory"), yaml.safe_load(text).get("durable")}


def test_a_history_in_postgresql_is_named_by_a_secret() -> None:
    """Several pods may read it; its URL is in no object of the chart."""
    database = {"existingSecret": "history", "secretKey": "dsn"}
    found = rendered({"web": {"enabled": True, "replicas": 3}, "history": {"enabled": True, "database": database}})
    spec = one(found, "Deployment", "muster-web")["spec"]
    assert (spec["replicas"], "strategy" in spec) == (3, False)
    _, web = spec["template"]["spec"]["containers"]
    assert {"name": "MUSTER_HISTORY", "valueFrom": {"secretKeyRef": {"name": "history", "key": "dsn"}}} in web["env"]
    settings = yaml.safe_load(one(found, "ConfigMap", "muster-history-settings")["data"]["settings.yaml"])
    assert settings["databaseFile"] == "/etc/muster/history/url"
    assert not [each for each in found if each["kind"] == "PersistentVolumeClaim"]


def test_a_password_of_the_history_is_refused_in_values() -> None:
    """It would stand in a ConfigMap."""
    given = "history.database.url=postgresql://muster:secret@host/db"
    result = CliRunner().invoke(main, ["render", "--set=history.enabled=true", f"--set={given}"])
    assert result.exit_code == 1
    assert "history.database.existingSecret" in result.output
