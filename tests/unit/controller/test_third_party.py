"""Job plugins of other packages are found by their entry points; the example in docs works as pip installs it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "docs" / "job-plugin-example"

PROGRAM = """
import json, sys
import msgspec
from controller.job.rules.pods import pod
from controller.job.rules.sync import PodSlot
from controller.plugins.base import PluginError
from controller.plugins.registry import plugins_for
from muster.api.batch import Job
from webhook.validate.volcano_job.spec import check_plugins

job = msgspec.json.decode(sys.argv[1], type=Job)
manifest = pod(job, PodSlot(job.spec.tasks[0], 0, "j-w-0"))
result = {"refused": [error.path for error in check_plugins(job)], "plugins": [], "objects": [], "error": ""}
try:
    for plugin in plugins_for(job.spec.plugins):
        result["plugins"].append(type(plugin).__name__)
        result["objects"] += [owned.manifest for owned in plugin.objects(job)]
        plugin.shape(job, PodSlot(job.spec.tasks[0], 0, "j-w-0"), manifest)
except PluginError as error:
    result["error"] = str(error)
print(json.dumps({**result, "pod": manifest}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which pip has installed the example."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source")  # a build leaves files behind
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(folder / "source")], check=True, timeout=120)
    return folder / "site"


def run(site: Path, **plugins: list[str]) -> dict[str, Any]:
    """What the controller and admission make of a Job with these plugins, in a process that has the package."""
    template = {"spec": {"containers": [{"name": "main"}]}}
    job = {
        "metadata": {"name": "j", "namespace": "n", "uid": "u"},
        "spec": {"tasks": [{"name": "w", "replicas": 1, "template": template}], "plugins": plugins},
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    command = [sys.executable, "-c", PROGRAM, json.dumps(job)]
    output = subprocess.run(command, env=environment, capture_output=True, check=True, text=True, timeout=60).stdout
    answer: dict[str, Any] = json.loads(output)
    return answer


def test_the_example(site: Path) -> None:
    """Admission knows its name; it runs behind the built-in ones; its object and its changes of the pod are there."""
    answer = run(site, settings=["--mount=/etc/app", "lr=0.1"], env=[])
    assert answer["refused"] == []
    assert answer["plugins"] == ["Env", "_Guarded"]
    assert answer["objects"] == [{"metadata": {"name": "j-settings"}, "data": {"lr": "0.1"}}]
    (container,) = answer["pod"]["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "settings", "mountPath": "/etc/app"}]
    assert container["env"][-1] == {"name": "SETTINGS", "value": "/etc/app"}


def test_its_errors_are_told(site: Path) -> None:
    """Its own sentence, for the Job's status."""
    answer = run(site, settings=["oops"])
    assert answer["error"] == "spec.plugins[settings]: 'oops' must be key=value, for example lr=0.1"


def test_a_broken_package_harms_only_those_that_ask_for_it(tmp_path: Path) -> None:
    """One that cannot be imported, and one whose method fails; a built-in name is not taken from us."""
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[muster.controller.plugins]\nmissing = nowhere:Plugin\nfails = broken:Plugin\nenv = broken:Plugin\n"
    )
    (tmp_path / "broken.py").write_text("class Plugin:\n    def __init__(self, arguments): self.objects = 1\n")
    assert run(tmp_path, env=[])["plugins"] == ["Env"]
    assert "nowhere:Plugin cannot be loaded: ModuleNotFoundError" in run(tmp_path, missing=[])["error"]
    assert "objects failed: TypeError: 'int' object is not callable" in run(tmp_path, fails=[])["error"]
