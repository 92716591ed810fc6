"""Style and scripts, with their hashes: a browser runs no script that is not the one that was shipped."""

import base64
import hashlib
from functools import cached_property
from pathlib import Path
from typing import Final

from markupsafe import Markup

LIVE: Final = ("vendor/htmx.min.js", "vendor/sse.min.js")
"""The scripts of live updates, from npm (`make setup` brings them); pages work without."""


class Assets:
    """The files of a folder, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def integrity(self, name: str) -> str:
        """Return the hash of a file, as the attribute `integrity` has it."""
        digest = hashlib.sha384((self.folder / name).read_bytes()).digest()
        return f"sha384-{base64.b64encode(digest).decode()}"

    @cached_property
    def live(self) -> bool:
        """True if the scripts of live updates are there."""
        return all((self.folder / name).is_file() for name in LIVE)

    @cached_property
    def scripts(self) -> Markup:
        """The elements that load the scripts; empty where they are not there."""
        return Markup("\n").join(
            Markup('<script src="/static/{}" integrity="{}" defer></script>').format(name, self.integrity(name))
            for name in (LIVE if self.live else ())
        )

    @cached_property
    def style(self) -> Markup:
        """The element that loads the style."""
        name = "muster.css"
        return Markup('<link rel="stylesheet" href="/static/{}" integrity="{}">').format(name, self.integrity(name))
