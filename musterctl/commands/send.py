"""Commands of the API (bus.volcano.sh) as `muster job` and `muster queue` send them to the controller."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from muster.api.base import Resource
from muster.api.bus import COMMANDS
from musterctl.cluster import known
from musterctl.objects import connect_in, failing_as, for_each, get, name_of, reference


def send(
    action: str,
    resource: Resource[Any],
    names: Iterable[str],
    namespace: str | None,
    kubeconfig: Path | None,
    plane: str | None,
) -> None:
    """Asks for an action on objects, which must exist. A Command goes away with an object of its namespace."""
    wanted = [name_of(resource, name) for name in names]
    client, space = connect_in(namespace, kubeconfig, plane)

    def ask(name: str) -> None:
        uid = get(client, resource, name, space if resource.namespaced else None)["metadata"]["uid"]
        target = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid}
        metadata: dict[str, Any] = {"generateName": f"{name}-{action.lower()}-"}
        if resource.namespaced:
            metadata["ownerReferences"] = [target]
        command = {"metadata": metadata, "action": action, "target": target}
        with failing_as(f"ask for {action} of", client, resource, name), known(client, COMMANDS):
            client.create(COMMANDS, command, space, strict=True)
        click.echo(f"{reference(resource, name)}: {action} asked for")

    for_each(wanted, ask)
