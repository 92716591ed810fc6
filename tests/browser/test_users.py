"""The page in the cluster: users with tokens of their own, one of whom sees one namespace; and a token that ends."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from page_server import PageServer, page_server, token_of
from playwright.sync_api import Browser, BrowserContext, expect
from screens import PAGES, Screen, World, make, window
from tenants import ACCOUNTS, bind, user

from history.store import STORE_VARIABLE
from muster.api.volcano.batch import JOBS
from musterctl.plane.state import history_of

pytestmark = pytest.mark.browser
WaitFor = Callable[..., Any]
HIDDEN = re.compile("secret|theirs")
A_MINUTE_MS = 70_000


@pytest.fixture(scope="module")
def server(world: World, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor) -> Iterator[PageServer]:
    """The page as the chart runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STORE_VARIABLE, history_of(world.plane.root))
        with page_server(world.plane, tmp_path_factory.mktemp("page"), wait_for) as one:
            yield one


@pytest.fixture(scope="module")
def tokens(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tokens of ada and zoe, who may edit one namespace, and of an administrator."""
    folder = tmp_path_factory.mktemp("users")
    for name in ("ada", "zoe", "root"):
        subject, _ = user(world.plane, "ours", folder, name)
        if name == "root":
            bind(world.plane, "cluster-admin", subject, everywhere=True)
        else:
            bind(world.plane, "edit", subject)
            bind(world.plane, "muster-edit", subject)
    return {name: token_of(world.client, "ours", name) for name in ("ada", "zoe", "root")}


@pytest.fixture
def signed_in(browser: Browser, server: PageServer, tokens: dict[str, str]) -> Iterator[Callable[[str], Screen]]:
    """Signs a user in, in a window of his own."""
    made: list[BrowserContext] = []

    def enter(name: str) -> Screen:
        context = browser.new_context(ignore_https_errors=True)
        made.append(context)
        screen = window(context, server.url)
        screen.page.goto(f"{server.url}/signin")
        screen.page.get_by_label("Token").fill(tokens[name])
        screen.page.get_by_role("button", name="Sign in").click()
        screen.page.wait_for_url("**/queues")
        return screen

    yield enter
    for context in made:
        context.close()


@pytest.mark.parametrize("path", PAGES)
def test_who_sees_one_namespace_sees_that_alone(signed_in: Callable[[str], Screen], path: str) -> None:
    """On every page, in what there is to read and in what stands behind it."""
    assert not HIDDEN.search(signed_in("ada").open(path).content())


def test_an_administrator_sees_both(signed_in: Callable[[str], Screen]) -> None:
    """So that the test above can fail."""
    page = signed_in("root").open("/gangs")
    expect(page.get_by_role("link", name="Job secret-run")).to_be_visible()
    expect(page.get_by_role("link", name="Job running")).to_be_visible()


@pytest.mark.parametrize("path", ["/history", "/usage?by=workload", "/topology"])
def test_an_administrator_sees_what_others_do_not(signed_in: Callable[[str], Screen], path: str) -> None:
    """On pages that show something of others, or count on it."""
    expect(signed_in("root").open(path).locator("main")).to_contain_text(HIDDEN if path != "/topology" else "of 32")


def test_a_page_of_another_namespace_is_not_there(signed_in: Callable[[str], Screen]) -> None:
    """It says the same as of one that never was."""
    screen = signed_in("ada")
    texts = []
    for path in ("/gangs/theirs/secret-run", "/gangs/theirs/never-was"):
        answer = screen.page.goto(f"{screen.base}{path}")
        assert answer is not None
        assert answer.status == 404
        texts.append(screen.page.locator("main").inner_text().replace("secret-run", "never-was"))
    assert texts[0] == texts[1]


def test_streams_tell_each_what_he_may_see(signed_in: Callable[[str], Screen], world: World) -> None:
    """A gang of another namespace comes to the administrator's page, and never to the other one."""
    ada, root = signed_in("ada").open("/gangs"), signed_in("root").open("/gangs")
    make(world.client, "secret-new", "theirs", replicas=1)
    expect(root.get_by_role("link", name="Job secret-new")).to_be_visible()
    make(world.client, "newcomer", "ours", replicas=1)
    expect(ada.get_by_role("link", name="Job newcomer")).to_be_visible()
    assert not HIDDEN.search(ada.content())
    for name, namespace in (("newcomer", "ours"), ("secret-new", "theirs")):
        world.client.delete(JOBS, name, namespace)


def test_a_gang_is_suspended_and_resumed(signed_in: Callable[[str], Screen], world: World) -> None:
    """By who may, after a page that asks whether it is meant."""
    make(world.client, "paused", "ours", replicas=1)
    screen = signed_in("ada")
    page = screen.open("/gangs/ours/paused")
    page.get_by_role("link", name="Suspend…").click()
    page.get_by_role("button", name="Suspend paused").click()
    page.wait_for_url("**/gangs?namespace=ours")
    expect(page.get_by_role("row", name=re.compile("Job paused"))).to_contain_text("Suspended", timeout=30_000)
    screen.open("/gangs/ours/paused").get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete paused").click()
    expect(page.get_by_role("row", name=re.compile("Job paused"))).to_have_count(0, timeout=30_000)


def test_a_revoked_token_ends_the_page(signed_in: Callable[[str], Screen], world: World) -> None:
    """Within a minute an open page says that it is to sign in again, without being touched."""
    screen = signed_in("zoe")
    page = screen.open("/gangs")
    expect(page.get_by_role("link", name="Job running")).to_be_visible()
    world.client.delete(ACCOUNTS, "zoe", "ours")
    expect(page.get_by_role("link", name="Job running")).to_have_count(0, timeout=A_MINUTE_MS)
    answer = page.goto(f"{screen.base}/gangs")
    assert answer is not None
    assert answer.status == 401
