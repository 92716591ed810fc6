"""Options that several commands share."""

from pathlib import Path

import click

from musterctl.plane import state
from musterctl.plane.errors import LocalError
from musterctl.plane.plane import Plane
from webhook.config import load

name_option = click.option(
    "--name",
    default=state.DEFAULT_NAME,
    show_default=True,
    envvar="MUSTER_NAME",
    show_envvar=True,
    help="Which plane; several can stand side by side.",
)


def _checked(_: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    """The text of a configuration that can be used."""
    if value is None:
        return None
    try:
        load(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error
    return value.read_text(encoding="utf-8")


admission_config_option = click.option(
    "--admission-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_checked,
    metavar="FILE",
    help="Resource groups for the webhook, in the YAML of Volcano's admission.",
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
