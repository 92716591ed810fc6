"""The base of the image by its digest: from a registry, or made on this machine."""

from pathlib import Path

import pytest

from musterctl.kind import image
from musterctl.plane.machine import LocalError

DIGEST = f"sha256:{'0' * 64}"
_ENGINE = """\
#!/bin/sh
echo "$@" >> {log}
case "$1 $2" in
"images --quiet") echo "{found}" ;;
"image inspect") echo "{digests}" ;;
esac
"""


class Engine:
    """A container engine that notes what it is asked for: a script, called as the real one is."""

    def __init__(self, folder: Path, *, found: str = "", digests: str = "") -> None:
        self._log = folder / "calls"
        program = folder / "engine"
        program.write_text(_ENGINE.format(log=self._log, found=found, digests=digests))
        program.chmod(0o755)
        self.engine = image.Engine("podman", program)

    @property
    def pulled(self) -> list[str]:
        """What it was told to pull."""
        calls = self._log.read_text().splitlines() if self._log.exists() else []
        return [call.removeprefix("pull ") for call in calls if call.startswith("pull ")]


def test_a_tag_is_pulled(tmp_path: Path) -> None:
    """From its registry, and becomes a digest."""
    fake = Engine(tmp_path, digests=f"docker.io/library/python@{DIGEST}")
    assert image.digest_of(fake.engine, "python:3.11") == f"docker.io/library/python@{DIGEST}"
    assert fake.pulled == ["python:3.11"]


def test_a_digest_stays(tmp_path: Path) -> None:
    """Nothing is asked for."""
    fake = Engine(tmp_path)
    assert image.digest_of(fake.engine, f"python@{DIGEST}") == f"python@{DIGEST}"
    assert fake.pulled == []


def test_what_this_machine_made_is_not_pulled(tmp_path: Path) -> None:
    """No registry has it; its digest is the store's, and where the store knows none, its tag has to do."""
    fake = Engine(tmp_path, found="0123456789ab", digests=f"localhost/base@{DIGEST}")
    assert image.digest_of(fake.engine, "localhost/base:1") == f"localhost/base@{DIGEST}"
    assert image.digest_of(Engine(tmp_path, found="0123456789ab").engine, "localhost/base:1") == "localhost/base:1"
    assert fake.pulled == []


def test_what_this_machine_has_not_is_named(tmp_path: Path) -> None:
    """Before a registry is asked for it, whose error would be about a connection."""
    with pytest.raises(LocalError, match=r"no image localhost/base:1 on this machine"):
        image.digest_of(Engine(tmp_path).engine, "localhost/base:1")
