"""Shows something again and again, as `watch` does: the screen of a terminal is drawn anew, other output goes on."""

import time
from collections.abc import Callable

import click

WATCH_S = 5
"""Seconds between two reads of a whole cluster."""


def again(show: Callable[[], None], *, watch: bool) -> None:
    """Show once, or with `watch` until the user interrupts, which is no error."""
    show()
    try:
        while watch:
            time.sleep(WATCH_S)
            click.clear()  # does nothing where the output is no terminal
            show()
    except KeyboardInterrupt:
        click.echo()
