"""The page in a real browser: chromium on a plane with gangs that run, wait and have ended.

`site` is `muster web` itself, started as a user starts it; `screen` opens its pages in a browser that has the key.
`make e2e-web` fetches what this needs. MUSTER_CHROMIUM names another browser; `--pictures` writes those of the docs.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubelets import kubelet, serve_all_nodes
from lacking import pytest_sessionfinish
from making import module_plane
from node_faults import XID, says
from planes import pytest_configure, pytest_runtest_makereport, wait_for
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright
from screens import MUSTER, Screen, World, make, window

from muster.api.names import BUDGET
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.plane.install import BLOCK, RACK
from musterctl.plane.plane import Plane
from musterctl.plane.state import ALL

expect.set_options(timeout=30_000)  # a Job that is deleted goes with its pods

__all__ = ["module_plane", "pytest_configure", "pytest_runtest_makereport", "pytest_sessionfinish", "wait_for"]
TOPOLOGY = f"""
tiers:
- plugins: [{{name: gang}}, {{name: priority}}, {{name: elastic}}, {{name: proportion}}]
- plugins: [{{name: predicates}}, {{name: minruntime}}, {{name: subgrouporder}}, {{name: taskorder}}]
- plugins:
  - name: topology
    arguments: {{levels: [{BLOCK}, {RACK}]}}
"""
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
_URL = re.compile(r"http://localhost:\d+/\?key=\S+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that writes pictures."""
    parser.addoption("--pictures", action="store_true", help="Write the screenshots of the docs into docs/images.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skips all tests of this folder where there is no browser, or neither axe-core nor npm to fetch it."""
    if not chromium():
        pytest.skip("the page needs chromium on PATH, or MUSTER_CHROMIUM: on Debian, `apt-get install chromium`")
    if not AXE.exists() and shutil.which("npm") is None:
        pytest.skip("the page is judged by axe-core, which npm fetches: on Debian, `apt-get install npm`")


def chromium() -> str:
    """The browser of this machine; empty without any."""
    return os.environ.get("MUSTER_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser, started."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=chromium(), args=sandbox)
        yield one
        one.close()


@pytest.fixture(scope="module")
def world(
    module_plane: Callable[..., Plane], wait_for: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Four racks; a gang that runs, two that wait, one that has ended, one of another namespace; a suspect node."""
    plane = module_plane(ALL, nodes=16, racks=4, blocks=2, planning_config=TOPOLOGY)
    client = plane.client()
    with kubelet(tmp_path_factory.mktemp("kubelet")) as one, serve_all_nodes(client, one):
        _fill(plane, client, wait_for)
        yield World(plane, client)
    client.close()


def _fill(plane: Plane, client: Client, wait_for: Callable[..., Any]) -> None:
    budget = {BUDGET: "nvidia.com/gpu=10000h/month"}
    client.create(
        QUEUES, {"metadata": {"name": "research", "annotations": budget}, "spec": {"deserved": {"nvidia.com/gpu": 64}}}
    )
    team = {"parent": "research", "weight": 2, "capability": {"nvidia.com/gpu": 256}}
    client.create(QUEUES, {"metadata": {"name": "vision"}, "spec": team})
    for namespace in ("ours", "theirs"):
        plane.kubectl("create", "namespace", namespace)
    make(client, "ended", "ours", replicas=2, run_s=0.5)
    wait_for(lambda: _phase(client, "ended", "ours") == "Completed", 60, "a gang to end")
    make(client, "running", "ours", replicas=6)
    make(client, "secret-run", "theirs", replicas=2)
    for name, namespace in (("running", "ours"), ("secret-run", "theirs")):
        wait_for(lambda n=name, s=namespace: _phase(client, n, s) == "Running", 60, f"{name} to run")
    make(client, "waiting", "ours", replicas=12)
    make(client, "secret-wait", "theirs", replicas=14)
    says(client, "node-0015", XID, "True")


def _phase(client: Client, name: str, namespace: str) -> str:
    return client.get(JOBS, name, namespace).status.state.phase


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[str]:
    """The URL with its key that `muster web` prints."""
    options = ["--port=0", "--no-open", f"--kubeconfig={world.plane.kubeconfig}"]
    with subprocess.Popen([*MUSTER, "web", *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = _URL.search(process.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            process.terminate()


@pytest.fixture
def screens(browser: Browser, site: str) -> Iterator[Callable[..., Screen]]:
    """Opens windows that have the key: `screens(viewport=…, color_scheme=…)`."""
    made: list[BrowserContext] = []

    def make_one(**how: Any) -> Screen:
        context = browser.new_context(**how)
        made.append(context)
        screen = window(context, site.partition("/?")[0])
        screen.page.goto(site)
        return screen

    yield make_one
    for context in made:
        context.close()


@pytest.fixture
def screen(screens: Callable[..., Screen]) -> Screen:
    """A window of a usual size."""
    return screens(viewport={"width": 1280, "height": 900})


@pytest.fixture(scope="session")
def axe() -> str:
    """The script that finds what keeps people from reading a page."""
    if not AXE.exists():
        pytest.fail(f"{AXE} is not there; `make e2e-web` fetches it")
    return AXE.read_text(encoding="utf-8")
