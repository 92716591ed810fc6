"""Headlamp with its Volcano plugin, unmodified, in a real browser: what a user sees of Muster there, and can do."""

import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from beside import browser, headlamp
from beside.browser import Browser
from beside.headlamp_server import CLUSTER, HeadlampServer
from jobs import job, task
from kubelets import kubelet, serve_all_nodes
from tenants import bind, user

from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [
    pytest.mark.neighbour,
    pytest.mark.skipif(bool(browser.missing()), reason=f"not installed: {browser.missing()}"),
    pytest.mark.skipif(bool(headlamp.missing()), reason=f"not installed: {headlamp.missing()}"),
]
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
TEAM = "team"
QUEUE = "research"
QUEUE_SPEC: JSON = {"weight": 2, "capability": {"cpu": "64"}, "deserved": {"cpu": "48"}}
NODES = 4
CPU_OF_A_NODE = 32
PATIENCE_S = 120.0
"""A page of 14 MB of JavaScript takes its time on a busy machine."""


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane]) -> Plane:
    """Nodes of 32 CPUs, a queue of 64, a namespace."""
    one = module_plane(nodes=NODES, cpu=str(CPU_OF_A_NODE))
    one.client().create(QUEUES, {"metadata": {"name": QUEUE}, "spec": QUEUE_SPEC})
    return one


@pytest.fixture(scope="module")
def client(plane: Plane) -> Iterator[Client]:
    """An administrator's client."""
    with contextlib.closing(plane.client()) as one:
        yield one


@pytest.fixture(scope="module")
def server(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HeadlampServer, str]]:
    """Headlamp for the plane, and its address."""
    files = headlamp.built()
    cluster = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
    ca_file = tmp_path_factory.mktemp("headlamp") / "ca.pem"
    ca_file.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    one = HeadlampServer(files.page, files.plugin, cluster["server"], ca_file)
    with one.running() as address:
        yield one, address


@pytest.fixture(scope="module")
def pages(
    plane: Plane, server: tuple[HeadlampServer, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], "Pages"]]:
    """`pages(role)`: a browser in which a user with that role everywhere has signed in; one for all who ask."""
    made: dict[str, Pages] = {}
    with contextlib.ExitStack() as stack:

        def of(role: str) -> Pages:
            if role not in made:
                folder = tmp_path_factory.mktemp(role)
                subject, kubeconfig = user(plane, TEAM, folder, f"user-of-{role}")
                bind(plane, role, subject, everywhere=True)
                made[role] = Pages(stack.enter_context(browser.browser(folder)), server[1])
                made[role].sign_in(token_of(kubeconfig))
            return made[role]

        yield of


class Pages:
    """The pages of one signed-in user."""

    def __init__(self, window: Browser, address: str) -> None:
        self.window = window
        self._address = address

    def open(self, path: str) -> None:
        """Goes to a page of the plugin, e.g. `jobs/team/j`."""
        self.window.open(f"{self._address}/c/{CLUSTER}/volcano/{path}")

    def sign_in(self, token: str) -> None:
        """Opens Headlamp, which asks for a token, and pastes it."""
        self.open("jobs")
        self.window.type("//input[@id='token']", token)
        self.window.click("//button[normalize-space()='Authenticate']")
        self.window.see("Volcano Jobs")

    def rows(self) -> dict[str, list[str]]:
        """The rows of the page's first table, by name."""
        script = """return [...document.querySelectorAll('table tbody tr')]
            .map(row => [...row.cells].map(cell => cell.innerText.trim()).filter(text => text))"""
        return {row[0]: row[1:] for row in self.window.run(script) if row}

    def facts(self) -> dict[str, str]:
        """Name and value of everything that a page of details lists."""
        script = """return [...document.querySelectorAll('dt')]
            .map(name => [name.innerText.trim(), name.nextElementSibling.innerText.trim()])"""
        return dict(self.window.run(script))

    def buttons(self) -> list[str]:
        """The names of the buttons that the page offers."""
        script = "return [...document.querySelectorAll('button[aria-label]')].map(one => one.ariaLabel)"
        return [str(name) for name in self.window.run(script)]

    def press(self, label: str) -> None:
        """Presses one of the buttons in the head of a page."""
        self.window.click(f"//button[@aria-label='{label}']")


def token_of(kubeconfig: Path) -> str:
    """The token with which its user signs in."""
    return str(yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]["token"])


def of_job(client: Client, name: str) -> Any:
    """The PodGroup of a Job; None before there is one."""
    return next((one for one in client.list(POD_GROUPS, TEAM) if one.metadata.name.startswith(f"{name}-")), None)


def phase(client: Client, name: str) -> str:
    """The phase of a Job."""
    return client.get(JOBS, name, TEAM).status.state.phase


@pytest.fixture
def clean(client: Client, wait_for: WaitFor) -> Iterator[None]:
    """After the test the Jobs are gone."""
    yield
    for each in client.list(JOBS, TEAM):
        client.delete(JOBS, each.metadata.name, TEAM)
    wait_for(lambda: not client.list(PODS, TEAM), PATIENCE_S, "the pods to be gone")


@pytest.mark.usefixtures("clean")
def test_lists(client: Client, pages: Callable[[str], Pages], wait_for: WaitFor) -> None:
    """The three lists show phases, queues and numbers, and change by themselves when a gang starts."""
    page = pages("muster-view")
    page.open("jobs")
    client.create(JOBS, job("runs", TEAM, task("w", 3), queue=QUEUE), TEAM)
    wait_for(lambda: page.rows().get("runs", [])[:5] == [TEAM, "Running", QUEUE, "3", "3"], PATIENCE_S, "the Job")
    page.open("podgroups")
    group = of_job(client, "runs").metadata.name
    wait_for(lambda: page.rows().get(group, [])[:5] == [TEAM, "Running", "3", "3", QUEUE], PATIENCE_S, "its PodGroup")
    page.open("queues")
    wanted = ["Open", "2", "root", "0", "0", "1", "0", "0"]  # weight, parent; inqueue, pending, running, …
    wait_for(lambda: page.rows().get(QUEUE, [])[:8] == wanted, PATIENCE_S, f"{QUEUE}: {wanted}")


@pytest.mark.usefixtures("clean")
def test_the_sentence(client: Client, pages: Callable[[str], Pages], wait_for: WaitFor) -> None:
    """From the page of a Job that waits one gets to its PodGroup, which shows Muster's sentence."""
    client.create(JOBS, job("waits", TEAM, task("w", NODES + 2, cpu="30"), queue="default"), TEAM)
    group = wait_for(lambda: (one := of_job(client, "waits")) and one.status.conditions and one, PATIENCE_S)
    sentence = group.status.conditions[-1].message
    assert "6 pods must start together" in sentence
    page = pages("muster-view")
    page.open("jobs/team/waits")
    page.window.see(sentence)  # as an Event
    page.window.click(f"//a[normalize-space()='{group.metadata.name}']")
    page.window.see("Conditions", sentence)
    facts = page.facts()
    assert (facts["Message"], facts["Reason"], facts["Type"]) == (sentence, "NotEnoughResources", "Unschedulable")
    assert (facts["Queue"], facts["Min Member"], facts["Running"]) == ("default", "6", "0")


@pytest.mark.usefixtures("clean")
def test_suspend_and_resume(client: Client, pages: Callable[[str], Pages], wait_for: WaitFor) -> None:
    """The page's buttons suspend a Job and let it go on, and the page tells so without a reload."""
    client.create(JOBS, job("stops", TEAM, task("w", 2), queue=QUEUE), TEAM)
    page = pages("muster-edit")
    page.open("jobs/team/stops")
    wait_for(lambda: page.facts().get("Status") == "Running", PATIENCE_S, "the page to show that it runs")
    page.press("Suspend")
    page.window.see("Suspend command created for stops")
    wait_for(lambda: page.facts().get("Status") == "Aborted", PATIENCE_S, "the page to show that it is suspended")
    assert phase(client, "stops") == "Aborted"
    page.press("Resume")
    wait_for(lambda: page.facts().get("Status") == "Running", PATIENCE_S, "the page to show that it runs again")
    assert phase(client, "stops") == "Running"
    wait_for(lambda: not client.list(COMMANDS, TEAM), PATIENCE_S, "the Commands to be gone")


@pytest.mark.usefixtures("clean")
def test_a_viewer_is_offered_nothing(
    client: Client, pages: Callable[[str], Pages], server: tuple[HeadlampServer, str], wait_for: WaitFor
) -> None:
    """Who may only look sees the page of a Job without the button that suspends it, which others have."""
    client.create(JOBS, job("stays", TEAM, task("w", 1), queue=QUEUE), TEAM)
    editor, viewer = pages("muster-edit"), pages("muster-view")
    editor.open("jobs/team/stays")
    wait_for(lambda: "Suspend" in editor.buttons(), PATIENCE_S, "the editor's button")
    answered, before = server[0].answered, len(server[0].answered)
    viewer.open("jobs/team/stays")
    wait_for(lambda: viewer.facts().get("Status") == "Running", PATIENCE_S, "the page to show that it runs")

    def asked() -> bool:
        reviews = [body for _, path, body in answered[before:] if path.endswith("/selfsubjectaccessreviews")]
        return any(b'"commands"' in body for body in reviews)

    wait_for(asked, PATIENCE_S, "the page to ask whether he may")
    assert "Suspend" not in viewer.buttons()


def test_queues(client: Client, pages: Callable[[str], Pages], wait_for: WaitFor) -> None:
    """An administrator's page closes and opens a queue, and changes its weight; it shows what the queue may use."""
    page = pages("muster-admin")
    page.open(f"queues/{QUEUE}")
    shown = page.window.see("Capacity and Allocated Resources", "Deserved and Guaranteed Resources")
    assert "64" in shown
    assert "48" in shown
    page.press("Close")
    wait_for(lambda: page.facts().get("State") == "Closed", PATIENCE_S, "the page to show that it is closed")
    page.press("Open")
    wait_for(lambda: page.facts().get("State") == "Open", PATIENCE_S, "the page to show that it is open")
    page.press("Update Weight")
    page.window.type("//input[@type='number']", "5")  # after the 2 that is there
    page.window.click("//button[normalize-space()='Update']")
    wait_for(lambda: page.facts().get("Weight") == "25", PATIENCE_S, "the page to show the weight")
    assert client.get(QUEUES, QUEUE).spec.weight == 25
    client.merge_patch(QUEUES, QUEUE, {"spec": {"weight": QUEUE_SPEC["weight"]}})


@pytest.mark.usefixtures("clean")
def test_logs(client: Client, pages: Callable[[str], Pages], wait_for: WaitFor, tmp_path: Path) -> None:
    """The page of a Job finds its pods by Muster's labels and asks for their logs; the stream itself is not judged."""
    client.create(JOBS, job("prints", TEAM, task("w", 1), queue=QUEUE), TEAM)
    page = pages("muster-view")
    with kubelet(tmp_path) as one, serve_all_nodes(client, one):
        page.open("jobs/team/prints")
        wait_for(lambda: page.facts().get("Status") == "Running", PATIENCE_S, "the page to show that it runs")
        page.press("Show Logs")
        wait_for(lambda: any("/team/prints-w-0/main" in path for path in one.asked), PATIENCE_S, "the logs to be read")


@pytest.mark.usefixtures("clean")
def test_rights_in_one_namespace(
    plane: Plane, client: Client, server: tuple[HeadlampServer, str], wait_for: WaitFor, tmp_path: Path
) -> None:
    """Who has rights in one namespace only names it in Headlamp's settings, sees its Jobs and suspends one."""
    client.create(JOBS, job("mine", TEAM, task("w", 1), queue=QUEUE), TEAM)
    subject, kubeconfig = user(plane, TEAM, tmp_path, "one-namespace")
    bind(plane, "muster-edit", subject)
    with browser.browser(tmp_path) as window:
        page = Pages(window, server[1])
        page.sign_in(token_of(kubeconfig))
        settings = json.dumps({"allowedNamespaces": [TEAM]})
        window.run(f"localStorage.setItem('cluster_settings.{CLUSTER}', {json.dumps(settings)})")
        page.open("jobs")
        wait_for(lambda: page.rows().get("mine", [])[:2] == [TEAM, "Running"], PATIENCE_S, "the Job to run")
        page.open("jobs/team/mine")
        page.press("Suspend")
        wait_for(lambda: page.facts().get("Status") == "Aborted", PATIENCE_S, "the page to show that it is suspended")
