"""The garbage collector leaves alone what the caches hold, once they are filled and not before."""

import gc
import threading

from extender.settle import Settle


def test_what_is_there_when_the_caches_are_filled_is_frozen() -> None:
    """It waits for them."""
    filled, asked = threading.Event(), threading.Event()

    def ready() -> bool:
        asked.set()
        return filled.is_set()

    before = gc.get_freeze_count()
    settle = Settle(ready, look_s=0.01)
    settle.start()
    try:
        assert asked.wait(10)
        assert gc.get_freeze_count() == before
        filled.set()
        settle._thread.join(60)
        assert gc.get_freeze_count() > before
    finally:
        settle.stop()
        gc.unfreeze()


def test_it_ends_when_the_process_does() -> None:
    """With caches that are never filled."""
    before = gc.get_freeze_count()
    settle = Settle(lambda: False, look_s=60)
    settle.start()
    settle.stop()
    assert not settle._thread.is_alive()
    assert gc.get_freeze_count() == before
