"""Values of the chart, rendered by helm: wrong ones are refused by name, before a pod fails to start with them."""

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from certs.authority import Authority
from extender.planner.api import report_of
from muster.chart import CHART
from musterctl import facts, settings
from musterctl.chart import files, generated
from musterctl.plane import binaries
from musterctl.plane.machine import LocalError

JSON = dict[str, Any]
HELM = shutil.which("helm") or [*(binaries.user_cache() / "helm").glob("*/helm")]
needs_helm = pytest.mark.skipif(not HELM, reason="helm is not here, and not built yet")
BROKEN = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def rendered(values: JSON, folder: Path) -> list[JSON]:
    """The objects of the chart without CRDs, whose files are read elsewhere."""
    (folder / "values.yaml").write_text(yaml.safe_dump({"crds": {"enabled": False}} | values), encoding="utf-8")
    return [each for each in yaml.safe_load_all(files.render(values=[folder / "values.yaml"])) if each]


def value(path: str) -> JSON:
    """The schema of a value."""
    return dict(generated.leaves(generated.schema()))[path]


REFUSED: dict[str, tuple[JSON, str]] = {
    "a port of root's": ({"webhook": {"port": 443}}, "at '/webhook/port': minimum"),
    "two equal ports of the webhook": ({"webhook": {"port": 8080}},
        "webhook.port and webhook.statusPort are both 8080"),
    "two equal ports of the pair": ({"extender": {"port": 10259}}, "scheduler.port and extender.port are both 10259"),
    "two equal ports of the page": ({"web": {"enabled": True}, "history": {"statusPort": 8083}},
        "web.statusPort and history.statusPort are both 8083"),
    "two equal ports of the controller": ({"trainJobs": {"reports": {"enabled": True, "port": 8082}}},
        "controller.statusPort and trainJobs.reports.port are both 8082"),
    "no PEM": ({"certificates": {"mode": "provided", "caBundle": "ca.crt"}}, "/certificates/caBundle"),
    "no certificate": ({"webhook": {"clientCA": {"pem": BROKEN}}}, "clientCA.pem"),
    "an unknown setting": ({"controller": {"extraSettings": {"worker": 1}}}, "at '/controller/extraSettings'"),
    "an unknown plugin": ({"extender": {"config": {"tiers": [{"plugins": [{"name": "gnag"}]}]}}},
        "at '/extender/config/tiers/0/plugins/0/name'"),
    "an unknown plugin of a pool": ({"pools": [{"name": "a", "config": {"tiers": [{"plugins": [{"name": "gnag"}]}]}}]},
        "at '/pools/0/config/tiers/0/plugins/0/name'"),
    "an unknown CRD": ({"crds": {"exclude": ["jobs"]}}, "at '/crds/exclude/0'"),
    "an unknown runtime": ({"runtimes": {"exclude": ["torch"]}}, "at '/runtimes/exclude/0'"),
    "a queue's name": ({"queues": [{"name": "Research"}]}, "at '/queues/0/name'"),
    "a queue twice": ({"queues": [{"name": "a"}, {"name": "a"}]}, "queues: the name a occurs twice"),
    "a queue's label": ({"queues": [{"name": "a", "labels": {"-a": "b"}}]}, "at '/queues/0/labels'"),
    "a queue's amount": ({"queues": [{"name": "a", "spec": {"deserved": {"cpu": "4 cores"}}}]},
        "at '/queues/0/spec/deserved/cpu'"),
    "an amount below zero": ({"queues": [{"name": "a", "spec": {"guarantee": {"resource": {"cpu": -1}}}}]},
        "at '/queues/0/spec/guarantee/resource/cpu'"),
}  # fmt: skip


@needs_helm
@pytest.mark.parametrize("name", REFUSED)
def test_values_that_no_pod_could_start_with_are_refused(name: str, tmp_path: Path) -> None:
    """At rendering, with the path of the value."""
    values, message = REFUSED[name]
    with pytest.raises(LocalError) as refused:
        rendered(values, tmp_path)
    assert message in str(refused.value)


@needs_helm
def test_queues_have_labels_and_annotations(tmp_path: Path) -> None:
    """Without them a queue of the values is open to all and has no budget."""
    queue = {
        "name": "research",
        "labels": {"team": "a"},
        "annotations": {"muster.dev/budget": '{"month": {"cpu": "100"}}'},
        "spec": {"capability": {"cpu": 4, "memory": "1.5Gi", "nvidia.com/gpu": "8"}},
    }
    authority = Authority.create("values-test").cert_pem.decode()
    values = {"queues": [queue], "webhook": {"clientCA": {"pem": authority * 2}}}
    [shipped] = [each for each in rendered(values, tmp_path) if each["metadata"]["name"] == "muster-shipped"]
    made = yaml.safe_load(shipped["data"]["queue-research.yaml"])
    assert made["spec"] == queue["spec"]
    assert made["metadata"] == {name: queue[name] for name in ("name", "labels", "annotations")}


@needs_helm
def test_no_object_has_fields_that_are_not_stored(tmp_path: Path) -> None:
    """The API server drops empty maps of data, and a GitOps tool would find a difference in each comparison."""
    values = {"runtimes": {"enabled": False}}
    configs = [each for each in rendered(values, tmp_path) if each["kind"] == "ConfigMap"]
    assert {"muster-planning", "muster-shipped"} <= {each["metadata"]["name"] for each in configs}
    assert all(each.get("data", "left out") for each in configs)
    assert not [file.name for file in files.CRDS.glob("*.yaml") if "properties: {}" in file.read_text("utf-8")]


def test_the_schema_has_the_names_of_the_code() -> None:
    """Whoever adds a setting, a plugin, a CRD or a runtime adds it to values.schema.json."""
    for process, of in settings.PROCESSES.items():
        assert set(value(f"{process}.extraSettings")["properties"]) == set(msgspec.to_builtins(of())), process
    [error] = report_of("tiers:\n- plugins:\n  - name: '-'\n").errors
    plugin = value("extender.config")["properties"]["tiers"]["items"]["properties"]["plugins"]["items"]
    assert ", ".join(plugin["properties"]["name"]["enum"]) == error.partition("valid plugins: ")[2]
    assert set(value("crds.exclude")["items"]["enum"]) == {file.stem for file in files.CRDS.glob("*.yaml")}
    assert set(value("runtimes.exclude")["items"]["enum"]) == {file.stem for file in (CHART / "runtimes").iterdir()}


@needs_helm
def test_each_issuer_leaves_the_caBundles_to_the_controller(tmp_path: Path) -> None:  # noqa: N802 - the field's name
    """A field with two owners makes an upgrade fail halfway; only without a controller others write it."""
    authority = Authority.create("values-test").cert_pem.decode()
    for certificates in ({"mode": "own"}, {"mode": "certManager"}, {"mode": "provided", "caBundle": authority}):
        for controller in (True, False) if certificates["mode"] != "own" else (True,):
            found = rendered({"certificates": certificates, "controller": {"enabled": controller}}, tmp_path)
            configurations = [each for each in found if each["kind"].endswith("WebhookConfiguration")]
            text = yaml.safe_dump(configurations)
            assert len(configurations) == 2
            assert ("caBundle" in text or "inject-ca-from" in text) is not controller
            files_of = {each["metadata"]["name"]: each.get("data", {}) for each in found if each["kind"] == "ConfigMap"}
            if controller:
                assert ("ca.crt" in files_of["muster-controller-settings"]) is ("caBundle" in certificates)


@needs_helm
def test_a_drain_of_a_node_needs_no_flag(tmp_path: Path) -> None:
    """`kubectl drain` refuses pods with an emptyDir; what is lost with the pod otherwise has one on purpose."""
    values = {"web": {"enabled": True}, "pools": [{"name": "a"}]}
    pods = [each["spec"]["template"]["spec"] for each in rendered(values, tmp_path) if each["kind"] == "Deployment"]
    assert len(pods) == 5
    assert not [volume for pod in pods for volume in pod.get("volumes", ()) if "emptyDir" in volume]
    for container in (container for pod in pods for container in pod["containers"]):
        assert "TMPDIR" in {each["name"] for each in container["env"]}


@needs_helm
def test_its_own_replicas_preempt_nothing(tmp_path: Path) -> None:
    """In a full cluster a moved replica would end a gang elsewhere; who wants that names another class."""
    for name, made in (("muster", 1), ("system-cluster-critical", 0)):
        found = rendered(
            {part: {"priorityClassName": name} for part in ("webhook", "scheduler", "controller")}, tmp_path
        )
        classes = [each for each in found if each["kind"] == "PriorityClass"]
        assert [each["preemptionPolicy"] for each in classes] == ["Never"] * made
        pods = [each["spec"]["template"]["spec"] for each in found if each["kind"] == "Deployment"]
        assert {pod["priorityClassName"] for pod in pods} == {name}


@needs_helm
def test_alerts_know_the_number_of_replicas_and_the_page_about_them(tmp_path: Path) -> None:
    """And kube-scheduler's metrics are read beside the extender's."""
    url = "https://docs.example.com/metrics#alerts"
    metrics = {"rules": True, "serviceMonitors": True, "runbookUrl": url}
    found = rendered({"metrics": metrics, "webhook": {"replicas": 3}}, tmp_path)
    [groups] = [each["spec"]["groups"] for each in found if each["kind"] == "PrometheusRule"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["annotations"]["runbook_url"] for rule in rules} == {url}
    down = [rule["expr"].rpartition(" < ")[2] for rule in rules if rule["alert"] == "MusterReplicaDown"]
    assert down == ["3", "2", "2"]
    assert "_REPLICAS" not in yaml.safe_dump(rules)
    [monitor] = [
        each for each in found if each["kind"] == "ServiceMonitor" and each["metadata"]["name"] == "muster-scheduler"
    ]
    assert [each["port"] for each in monitor["spec"]["endpoints"]] == ["status", "scheduler"]
    [service] = [each for each in found if each["kind"] == "Service" and each["metadata"]["name"] == "muster-scheduler"]
    assert [each["name"] for each in service["spec"]["ports"]] == ["status", "scheduler"]


def test_alerts_of_two_clusters_are_not_added() -> None:
    """One Prometheus may read many clusters: each aggregation keeps the labels by which they differ."""
    for rule in facts.alert_rules():
        expression = rule["expr"]
        assert not re.search(r"\b(sum|min|max|count) ?\((?!cluster, namespace)", expression), expression
        assert not re.search(r"\b(by|on) \((?!cluster, namespace)", expression), expression


def hooks_of(folder: Path, *arguments: str) -> dict[str, JSON]:
    """What `helm test` runs, by kind: rendered as in a cluster in which every namespace exists."""
    chart = folder / "muster"
    shutil.copytree(CHART, chart)
    for file in (chart / "templates/tests").iterdir():
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r'lookup "v1" "Namespace" "" (\S+?)([ )])', r"\1\2", text), encoding="utf-8")
    result = files.helm("template", "muster", str(chart), "--set=crds.enabled=false", *arguments)
    assert not result.returncode, result.stderr
    found = [each for each in yaml.safe_load_all(result.stdout) if each]
    return {each["kind"]: each for each in found if "helm.sh/hook" in each["metadata"].get("annotations", {})}


@needs_helm
def test_helm_test_runs_a_gang(tmp_path: Path) -> None:
    """In a namespace that the webhook looks after; not where no part would start it."""
    found = hooks_of(tmp_path / "all", "--set=test.namespace=team")
    assert found.keys() == {"Pod", "Job"}
    job = found["Job"]
    assert (job["metadata"]["namespace"], job["metadata"]["labels"]["muster.dev/queue"]) == ("team", "default")
    assert (job["spec"]["parallelism"], job["spec"]["completionMode"]) == (2, "Indexed")
    assert hooks_of(tmp_path / "off", "--set=test.namespace=").keys() == {"Pod"}
    assert hooks_of(tmp_path / "none", "--set=scheduler.mode=none").keys() == {"Pod"}


@needs_helm
def test_plain_rendering_has_no_test() -> None:
    """Whoever pipes it into kubectl would create its Pod."""
    assert "helm.sh/hook" not in files.helm("template", "muster", str(CHART), "--set=crds.enabled=false").stdout


@needs_helm
def test_policies_let_helm_test_in(tmp_path: Path) -> None:
    """Where it is named who may read metrics, `helm test` still reaches every part, and nobody else does."""
    monitoring = {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}
    tester = hooks_of(tmp_path)["Pod"]["metadata"]["labels"]
    found = rendered({"networkPolicies": {"monitoring": [monitoring]}}, tmp_path)
    specs = [each["spec"] for each in found if each["kind"] == "NetworkPolicy"]
    assert len(specs) == 3
    for spec in specs:
        named, own = spec["ingress"][-1]["from"]
        assert named == monitoring
        assert own["podSelector"]["matchLabels"].items() <= tester.items()


@needs_helm
@pytest.mark.parametrize("name", ["argocd", "flux"])
def test_the_values_of_gitops_examples_are_accepted(name: str, tmp_path: Path) -> None:
    """The chart is the same for all, and each example has a queue."""
    *_, example = yaml.safe_load_all((CHART.parents[1] / f"examples/gitops/{name}.yaml").read_text(encoding="utf-8"))
    values = example["spec"].get("values") or example["spec"]["source"]["helm"]["valuesObject"]
    [shipped] = [each for each in rendered(values, tmp_path) if each["metadata"]["name"] == "muster-shipped"]
    assert "queue-research.yaml" in shipped["data"]
