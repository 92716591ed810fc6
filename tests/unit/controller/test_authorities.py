"""The authorities that trainers trust: a file that comes later, and changes."""

from pathlib import Path

import pytest

from controller.trainjob.obstacle import Obstacle
from controller.trainjob.report import Authorities


def test_it_is_followed(tmp_path: Path) -> None:
    """Until it is there, that is told; then what stands in it."""
    file = tmp_path / "ca.crt"
    authorities = Authorities(file)
    with pytest.raises(Obstacle, match="the server that trainers report to cannot be read"):
        authorities.pem()
    for text in ("first", "second"):
        file.write_text(text)
        assert authorities.pem() == text
