"""The message of a command whose API server does not answer: which one it is, and what shows why."""

import os
from pathlib import Path
from typing import Final

import click

from muster.kube.errors import Unreachable
from musterctl.plane import state

_ASKED: Final = "musterctl.asked"
_BEGINS: Final = "no answer from the API server: "


def asks(kubeconfig: Path | None, server: str) -> None:
    """Note the cluster that the present command asks, for the message of an error."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_ASKED] = kubeconfig, server


def words(context: click.Context, error: Unreachable) -> str:
    """Return the message: a plane has a name, and a command that shows its parts; of others the address is named."""
    kubeconfig, server = context.meta.get(_ASKED, (None, ""))
    folders = Path(kubeconfig or os.environ.get("KUBECONFIG", "")).resolve().parents
    name = next((name for name in state.names() if state.folder_of(name).resolve() in folders), "")
    if name:
        which = "" if name == state.DEFAULT_NAME else f" --name {name}"
        return f"the API server of plane {name} does not answer; `muster status{which}` shows what is down"
    why = error.message.removeprefix(_BEGINS)
    where = f" at {server}" if server else ""
    return f"the API server{where} does not answer: {why}; is the cluster of this kubeconfig up?"
