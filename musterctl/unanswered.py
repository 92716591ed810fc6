"""Error message for an API server that does not respond: names the cluster, and a command that shows the reason."""

import os
from pathlib import Path
from typing import Final

import click

from muster.kube.errors import Unreachable
from musterctl.plane import state

_CLUSTER: Final = "musterctl.cluster"
_BEGINS: Final = "no answer from the API server: "


def note_cluster(kubeconfig: Path | None, server: str) -> None:
    """Store the cluster of the current command, for the error message."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_CLUSTER] = kubeconfig, server


def message_of(context: click.Context, error: Unreachable) -> str:
    """Return the error message.

    For a local control plane, it contains the name and a command that shows the components; for other clusters, the
    address.
    """
    kubeconfig, server = context.meta.get(_CLUSTER, (None, ""))
    folders = Path(kubeconfig or os.environ.get("KUBECONFIG", "")).resolve().parents
    name = next((name for name in state.names() if state.folder_of(name).resolve() in folders), "")
    if name:
        which = "" if name == state.DEFAULT_NAME else f" --name {name}"
        return f"the API server of control plane {name} does not answer; `muster status{which}` shows what is down"
    why = error.message.removeprefix(_BEGINS)
    where = f" at {server}" if server else ""
    return f"the API server{where} does not answer: {why}; is the cluster of this kubeconfig up?"
