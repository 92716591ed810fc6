"""Fixtures of the tests of commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from musterctl.app import main


@pytest.fixture
def shape(tmp_path: Path) -> Callable[..., Result]:
    """Runs `muster shape` on objects."""

    def run(*objects: dict[str, Any], options: tuple[str, ...] = ()) -> Result:
        file = tmp_path / "objects.yaml"
        file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        return CliRunner().invoke(main, ["shape", "-f", str(file), *options])

    return run
