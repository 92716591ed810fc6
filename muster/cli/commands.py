"""Commands of the API (bus.volcano.sh) as `muster job` and `muster queue` send them to the controller."""

from pathlib import Path
from typing import Any

import click

from muster.api.base import Resource
from muster.api.bus import COMMANDS
from muster.cli.listing import connect_in, get, reference, whole


def send(
    action: str,
    resource: Resource[Any],
    name: str,
    namespace: str | None,
    kubeconfig: Path | None,
    plane: str | None,
) -> None:
    """Asks for an action on an object, which must exist. A Command goes away with an object of its namespace."""
    client, space = connect_in(namespace, kubeconfig, plane)
    uid = get(client, whole(resource), name, space if resource.namespaced else None)["metadata"]["uid"]
    target = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid}
    metadata: dict[str, Any] = {"generateName": f"{name}-{action.lower()}-"}
    if resource.namespaced:
        metadata["ownerReferences"] = [target]
    client.create(COMMANDS, {"metadata": metadata, "action": action, "target": target}, space)
    click.echo(f"{reference(resource, name)}: {action} asked for")
