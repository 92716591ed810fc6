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
        assert not gc.isenabled(), "nothing of what comes now is garbage"
        filled.set()
        settle._thread.join(60)
        assert gc.get_freeze_count() > before
        assert gc.isenabled()
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
    assert gc.isenabled()


def test_garbage_is_collected_again_where_the_caches_are_not_filled_in_time() -> None:
    """The API server is away, and each try leaves something behind."""
    looks: list[bool] = []
    late = threading.Event()

    def never() -> bool:
        looks.append(gc.isenabled())
        if looks[-1]:
            late.set()
        return False

    settle = Settle(never, look_s=0.01, filling_s=0.03)
    settle.start()
    try:
        assert late.wait(10)
    finally:
        settle.stop()
    assert looks[:4] == [False, False, False, True]
