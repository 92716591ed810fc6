"""The garbage collector leaves alone what the caches hold, once they are filled and not before."""

import asyncio
import gc

from extender.cluster import settle


def test_what_is_there_when_the_caches_are_filled_is_frozen() -> None:
    """It waits for them."""
    before = gc.get_freeze_count()
    looks: list[int] = []

    def filled() -> bool:
        looks.append(gc.get_freeze_count())
        return len(looks) == 3

    try:
        asyncio.run(settle(filled, look_s=0.0))
        assert looks == [before] * 3
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
