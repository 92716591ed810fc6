"""What is watched is shown again until the user interrupts."""

import pytest

from musterctl.commands import queue


def test_it_is_shown_until_the_user_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once without --watch; an interruption is no error."""
    shown: list[int] = []

    def pause(seconds: float) -> None:
        assert seconds == queue.WATCH_S
        if len(shown) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(queue.time, "sleep", pause)
    queue.again(lambda: shown.append(1), watch=False)
    assert len(shown) == 1
    queue.again(lambda: shown.append(1), watch=True)
    assert len(shown) == 3
