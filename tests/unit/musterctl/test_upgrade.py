"""`muster upgrade check`: what it finds different between an installed release and the chart of this version."""

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner, Result
from loopback_server import Loopback, serving

from musterctl.app import main
from musterctl.chart import files
from musterctl.plane import binaries

JSON = dict[str, Any]
HELM = shutil.which("helm") or [*(binaries.user_cache() / "helm").glob("*/helm")]
pytestmark = pytest.mark.skipif(not HELM, reason="helm is not here, and not built yet")
PLURALS = {"ConfigMap": "configmaps", "Deployment": "deployments", "DaemonSet": "daemonsets",
    "CustomResourceDefinition": "customresourcedefinitions"}  # fmt: skip
CRD = "queues.scheduling.volcano.sh"
OTHERS = [f"--set=crds.exclude={{{','.join(each.stem for each in files.CRDS.glob('*.yaml') if each.stem != CRD)}}}"]
RENDERED = [each for each in yaml.safe_load_all(files.render(arguments=OTHERS)) if each] if HELM else []


class Installed:
    """What the API server has: at first what the chart of this version renders."""

    def __init__(self) -> None:
        self.objects = deepcopy([each for each in RENDERED if each["kind"] in PLURALS])

    def one(self, kind: str, name: str) -> JSON:
        """An object, to be changed."""
        return next(each for each in self.objects if (each["kind"], each["metadata"]["name"]) == (kind, name))

    def handler(self) -> type[Loopback]:
        """Lists the objects of a kind."""
        installed = self

        class Handler(Loopback):
            def reply(self) -> None:
                """By the plural at the end of the path."""
                plural = urlsplit(self.path).path.rpartition("/")[2]
                found = [each for each in installed.objects if PLURALS[each["kind"]] == plural]
                self.answer({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": found}, 200)

        return Handler


@pytest.fixture
def installed() -> Installed:
    """The release."""
    return Installed()


@pytest.fixture
def kubeconfig(installed: Installed, tmp_path: Path) -> Iterator[Path]:
    """How to reach it."""
    path = tmp_path / "kubeconfig"
    with serving(installed.handler(), path):
        yield path


@pytest.fixture
def values(tmp_path: Path) -> Path:
    """The release's values: one CRD, as they are large."""
    file = tmp_path / "values.yaml"
    excluded = [each.stem for each in files.CRDS.glob("*.yaml") if each.stem != CRD]
    file.write_text(yaml.safe_dump({"crds": {"exclude": excluded}}))
    return file


def run(kubeconfig: Path, values: Path) -> Result:
    """Runs the check."""
    return CliRunner().invoke(main, ["upgrade", "check", f"--kubeconfig={kubeconfig}", f"--values={values}"])


def test_the_same_version_changes_nothing(kubeconfig: Path, values: Path) -> None:
    """It compares what is rendered with what is there, and finds no difference of its own making."""
    result = run(kubeconfig, values)
    assert (result.exit_code, result.output) == (0, "nothing changes\n")


def test_settings_flags_and_objects_that_change_are_listed(
    installed: Installed, kubeconfig: Path, values: Path
) -> None:
    """None of them stops an upgrade."""
    settings = installed.one("ConfigMap", "muster-webhook-settings")["data"]
    settings["settings.yaml"] = settings["settings.yaml"].replace("port: 9443", "port: 9000")
    [webhook] = installed.one("Deployment", "muster-webhook")["spec"]["template"]["spec"]["containers"]
    webhook["args"].append("--old=1")
    installed.objects.remove(installed.one("Deployment", "muster-controller"))
    installed.one("ConfigMap", "muster-planning")["metadata"]["name"] = "muster-before"
    version = installed.one("CustomResourceDefinition", CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del version["properties"]["spec"]["properties"]["priority"]
    result = run(kubeconfig, values)
    assert result.output.splitlines() == [
        f"{CRD}: v1beta1.object.spec.priority is new",
        "ConfigMap muster-before: is removed",
        "ConfigMap muster-planning: is new",
        "ConfigMap muster-webhook-settings: port: 9000 -> 9443",
        "Deployment muster-controller: is new",
        "Deployment muster-webhook: webhook --old: 1 -> unset",
    ]
    assert result.exit_code == 0


def test_what_this_version_refuses_is_an_error(installed: Installed, kubeconfig: Path, values: Path) -> None:
    """CRDs that accept less, and values that the chart no longer has."""
    schema = installed.one("CustomResourceDefinition", CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["before"] = {"type": "string"}
    result = run(kubeconfig, values)
    assert (result.exit_code, result.output) == (1, f"error: {CRD}: v1beta1.object.spec.before: is gone\n")
    values.write_text("webhook: {extraArgs: []}\n")
    result = run(kubeconfig, values)
    assert result.exit_code == 1
    assert result.output.startswith("error: the chart cannot be rendered")
    assert "extraArgs" in result.output
