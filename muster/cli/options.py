"""Options that several commands share."""

import click

from muster.local import state
from muster.local.errors import LocalError
from muster.local.plane import Plane

name_option = click.option(
    "--name",
    default=state.DEFAULT_NAME,
    show_default=True,
    envvar="MUSTER_NAME",
    show_envvar=True,
    help="Which plane; several can stand side by side.",
)


def existing(name: str) -> Plane:
    """The plane of that name; a LocalError that says which there are if it does not exist."""
    folder = state.folder_of(name)
    if state.load(folder) is None:
        others = ", ".join(state.names())
        raise LocalError(
            f"there is no plane {name!r}" + (f"; there is {others}" if others else "; `muster up` makes one")
        )
    return Plane(folder)
