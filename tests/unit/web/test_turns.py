"""One request at a time thinks; few wait, and not for long."""

import threading

import pytest
from served_app import wait_until
from starlette.exceptions import HTTPException

from web.slow import Turns


def test_few_wait_and_the_others_are_told_to_come_back() -> None:
    """A hundred requests that wait would have all threads of the server, and no page an answer."""
    turns, entered, go_on = Turns("think", waiting=1, patience_s=30), threading.Event(), threading.Event()
    done: list[str] = []

    def think(name: str) -> None:
        with turns.taken():
            entered.set()
            go_on.wait(30)
            done.append(name)

    first, second = (threading.Thread(target=think, args=(name,)) for name in ("first", "second"))
    first.start()
    assert entered.wait(30)
    second.start()
    wait_until(lambda: not turns._places._value, "the second to have its place")
    with pytest.raises(HTTPException, match="others think at this moment") as refused, turns.taken():
        pass
    assert refused.value.status_code == 429
    go_on.set()
    for each in (first, second):
        each.join(30)
    assert done == ["first", "second"]
    with turns.taken():
        pass


def test_who_waits_for_too_long_is_told_to_come_back() -> None:
    """And his place is free again."""
    turns = Turns("think", waiting=1, patience_s=0.01)
    with turns.taken():
        for _ in range(3):
            with pytest.raises(HTTPException), turns.taken():
                pass
