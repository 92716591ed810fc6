"""Values of the chart, rendered by helm: wrong ones are refused by name, before a pod fails to start with them."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from certs.authority import Authority
from extender.planner.api import report_of
from muster.chart import CHART
from musterctl import settings
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
