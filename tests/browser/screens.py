"""A window of a browser on the page, and what there is to see in it."""

import sys
from typing import Any, Final, NamedTuple

from gang_jobs import job
from playwright.sync_api import BrowserContext, Page

from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

MUSTER: Final = (sys.executable, "-c", "from musterctl.app import main; main()")
PATIENCE_MS: Final = 30_000
PAGES: Final = (
    *("/queues", "/gangs", "/gangs?ended=on", "/gangs/ours/running", "/gangs/ours/waiting", "/gangs/ours/ended"),
    *("/gangs/ours/waiting/explain", "/gangs/ours/running/logs/0", "/topology", "/whatif"),
    *("/history", "/history/ours/ended", "/usage?by=namespace&by=user"),
)
"""What there is to see on the plane of these tests."""


class World(NamedTuple):
    """A plane with something to see."""

    plane: Plane
    client: Client


def make(client: Client, name: str, namespace: str, *, queue: str = "vision", **how: Any) -> None:
    """Submit a gang of whole nodes."""
    content = job(name, namespace, **how)
    content["spec"]["queue"] = queue
    client.create(JOBS, content, namespace)


class Screen(NamedTuple):
    """A browser window on the site."""

    page: Page
    base: str
    errors: list[str]
    """What its console complained of: a page that breaks the site's own policy does."""

    def open(self, path: str) -> Page:
        """Open a page of the site."""
        answer = self.page.goto(f"{self.base}{path}")
        assert answer is not None
        assert answer.ok, f"{path}: {answer.status}"
        return self.page

    def text(self) -> str:
        """Return what there is to read."""
        return self.page.locator("body").inner_text()


def window(context: BrowserContext, base: str) -> Screen:
    """Open a window; what its console says is kept."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return Screen(page, base, errors)
