"""The pictures in the docs are what the pages look like: with --pictures they are written anew."""

from collections.abc import Callable
from pathlib import Path

import pytest
from screens import Screen

pytestmark = pytest.mark.browser
MOST_BYTES = 150 * 1024
IMAGES = Path(__file__).parents[2] / "docs" / "images"
PICTURES = (
    ("queues", "/queues", "light", 1100, 700),
    ("gangs", "/gangs?ended=on", "light", 1100, 480),
    ("gang", "/gangs/ours/running#happened", "dark", 1100, 860),
    ("phone", "/gangs/ours/waiting", "light", 390, 720),
)


@pytest.mark.parametrize(("name", "path", "scheme", "width", "height"), PICTURES)
def test_a_picture_is_small(
    screens: Callable[..., Screen],
    pytestconfig: pytest.Config,
    tmp_path: Path,
    name: str,
    path: str,
    scheme: str,
    width: int,
    height: int,
) -> None:
    """Few kilobytes, so that the repository stays small."""
    page = screens(viewport={"width": width, "height": height}, color_scheme=scheme).open(path)
    folder = IMAGES if pytestconfig.getoption("--pictures") else tmp_path
    folder.mkdir(exist_ok=True)
    file = folder / f"web-{name}.png"
    page.screenshot(path=file)
    assert 1024 < file.stat().st_size <= MOST_BYTES
