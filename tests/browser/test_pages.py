"""Every page on a plane, as who has started it sees it."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from screens import PAGES, Screen, World, make

from muster.api.volcano.batch import JOBS

pytestmark = pytest.mark.browser
MANIFEST = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: asked}
spec:
  minAvailable: 3
  schedulerName: volcano
  queue: vision
  tasks:
  - name: worker
    replicas: 3
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: none, resources: {limits: {nvidia.com/gpu: "8"}}}
"""


def test_queues_show_use_and_who_waits(screen: Screen) -> None:
    """As bars that say in words what they show."""
    page = screen.open("/queues")
    queue = page.get_by_role("region", name="vision")
    expect(
        queue.get_by_role("img", name=re.compile(r"nvidia.com.gpu: used 64, fair share .*capability 256"))
    ).to_be_visible()
    expect(queue.get_by_role("link", name="Job waiting")).to_be_visible()
    expect(queue.get_by_role("link", name="2 gangs wait")).to_be_visible()
    above = page.get_by_role("region", name="research")
    expect(above).to_contain_text("budget of 10,000 nvidia.com/gpu hours a month: 0% used")


def test_gangs_are_filtered(screen: Screen) -> None:
    """By a form that needs no script; the address can be sent to somebody."""
    page = screen.open("/gangs")
    table = page.get_by_role("region", name="Gangs")
    expect(table.get_by_role("row")).to_have_count(1 + 2 * 4)  # the second row of each has what matters less
    page.get_by_label("Namespace").select_option("ours")
    page.get_by_label("also ended").check()
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("namespace=ours"))
    expect(table.get_by_role("row")).to_have_count(1 + 2 * 3)
    expect(table.get_by_role("row", name=re.compile("Job ended"))).to_contain_text("Completed")
    expect(table.get_by_role("row", name=re.compile("Job waiting"))).to_contain_text("no room for 12 pods")


def test_a_gang_shows_where_it_is_and_what_happened(screen: Screen) -> None:
    """Racks, nodes, ranks, members, the log of one, and how it came there."""
    page = screen.open("/gangs/ours/running")
    expect(page.get_by_role("region", name=re.compile("^Rack ")).first).to_contain_text("worker")
    assert page.locator(".node").count() == 6
    expect(page.locator(".timeline")).to_contain_text("submitted")
    expect(page.get_by_role("region", name="Members").get_by_role("row")).to_have_count(7)
    page.get_by_role("link", name=re.compile("^log of running-worker-0")).click()
    expect(page.get_by_role("region", name="Log")).to_have_text("a step\nanother\n")


def test_a_gang_that_waits_says_why(screen: Screen) -> None:
    """In the planner's words."""
    page = screen.open("/gangs/ours/waiting")
    expect(page.get_by_role("heading", name="Job waiting")).to_be_visible()
    expect(page.locator("main")).to_contain_text("12 pods")
    expect(page.locator("main")).to_contain_text("8 nvidia.com/gpu")


def test_the_topology_names_the_suspect(screen: Screen) -> None:
    """With its condition, and what is free in each rack."""
    page = screen.open("/topology")
    suspects = page.get_by_role("region", name="Nodes that get nothing new")
    expect(suspects.get_by_role("row", name=re.compile("node-0015"))).to_contain_text("condition SysLogsXIDError=True")
    expect(page.get_by_role("region", name="Racks").get_by_role("row")).to_have_count(5)
    tree = page.get_by_role("region", name=re.compile("^Topology "))
    expect(tree.get_by_role("row")).to_have_count(1 + 2 + 4)
    expect(tree.get_by_role("row", name=re.compile("rack-0"))).to_contain_text("of 32")


def test_a_trial_says_what_would_happen(screen: Screen) -> None:
    """And errors stand beside their fields, with what was typed."""
    page = screen.open("/whatif")
    page.get_by_label("Submit these manifests").fill(MANIFEST)
    page.get_by_label("in namespace").select_option("ours")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("region", name="Outcome")).to_contain_text("Job ours/asked (submitted)")
    page.get_by_label("Number of new nodes").fill("some")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#add_nodes-error")).to_contain_text("a whole number")
    expect(page.get_by_label("Submit these manifests")).to_have_value(re.compile("name: asked"))


def test_the_history_tells_of_a_gang_that_has_ended(screen: Screen) -> None:
    """From its submission to its end, with where it ran; the list leads to its story."""
    page = screen.open("/history?namespace=ours")
    row = page.get_by_role("row", name=re.compile("Job ended"))
    expect(row).to_contain_text("Completed")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Job ended")
    expect(page.get_by_role("listitem").filter(has_text="planned").first).to_contain_text("node-")
    expect(page.locator(".timeline")).to_contain_text("ended")


def test_usage_is_told_by_what_is_asked(screen: Screen) -> None:
    """With a link to the same as CSV."""
    page = screen.open("/usage?by=namespace&by=workload&days=1")
    expect(page.get_by_role("row", name=re.compile("ours.Job.ended.*nvidia.com.gpu"))).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="The same as CSV").click()
    assert download.value.path().read_text(encoding="utf-8").startswith("namespace,workload,resource,unit,asked")


def test_an_open_page_follows_the_cluster(screen: Screen, world: World) -> None:
    """Without being loaded again: a mark that was made in it stays."""
    page = screen.open("/gangs?namespace=ours")
    page.evaluate("window.mark = 'still here'")
    make(world.client, "newcomer", "ours", replicas=1)
    expect(page.get_by_role("link", name="Job newcomer")).to_be_visible()
    world.client.delete(JOBS, "newcomer", "ours")
    expect(page.get_by_role("link", name="Job newcomer")).to_have_count(0)
    assert page.evaluate("window.mark") == "still here"


def test_a_change_disturbs_nobody(screen: Screen, world: World) -> None:
    """What is chosen in a form and not sent yet stays, and so does the focus, when the list under it is made anew."""
    page = screen.open("/gangs")
    page.get_by_label("Namespace").select_option("ours")
    page.get_by_role("link", name="Job running").focus()
    make(world.client, "passing", "ours", replicas=1)
    expect(page.get_by_role("link", name="Job passing")).to_be_visible()
    expect(page.get_by_role("link", name="Job running")).to_be_focused()
    expect(page.get_by_label("Namespace")).to_have_value("ours")
    world.client.delete(JOBS, "passing", "ours")
    expect(page.get_by_role("link", name="Job passing")).to_have_count(0)


@pytest.mark.parametrize("path", PAGES)
def test_no_page_breaks_its_own_policy(screen: Screen, path: str) -> None:
    """Nothing is loaded from elsewhere, no style or script stands in a page: the console says nothing."""
    page = screen.open(path)
    page.wait_for_load_state("load")
    assert screen.errors == []
    assert page.locator("[style], style, script:not([src])").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_keeps_people_from_reading(screens: Callable[..., Screen], axe: str, path: str, scheme: str) -> None:
    """axe-core finds no violation: contrast, names, headings, order, what a screen reader is told."""
    page = screens(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True).open(path)
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"]][:3]) for each in found] == []


@pytest.mark.parametrize("width", [1400, 500])
def test_the_table_of_gangs_fits(screens: Callable[..., Screen], width: int) -> None:
    """It needs no scrolling sideways."""
    page = screens(viewport={"width": width, "height": 900}).open("/gangs")
    wanted, visible = page.locator("#list").evaluate("list => [list.scrollWidth, list.clientWidth]")
    assert wanted <= visible


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_shows_a_page_in_one_column(screens: Callable[..., Screen], path: str) -> None:
    """The page itself never scrolls sideways; tables do, in their own box."""
    page = screens(viewport={"width": 360, "height": 740}).open(path)
    width, visible = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width <= visible


def test_the_keyboard_leads_everywhere(screen: Screen) -> None:
    """The first stop skips to the content; the focus can be seen; the list leads to a gang and back."""
    page = screen.open("/gangs?namespace=ours")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Queue")).to_be_focused()
    for _ in range(40):
        if page.evaluate("document.activeElement.textContent") == "Job running":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Job running")


def test_pages_work_without_scripts(screens: Callable[..., Screen]) -> None:
    """All but live updates."""
    screen = screens(java_script_enabled=False)
    for path in PAGES:
        expect(screen.open(path).get_by_role("heading", level=1)).to_be_visible()
