"""What `muster queue create` and `update` write into a queue, from what users type; resources must be known by name."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from muster.api.kubernetes.core import NODES
from muster.api.names import NAMESPACE_SELECTOR, NODE_POOL
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.resources.labels import read_selector
from muster.resources.near import EVERYWHERE, near_resource
from musterctl.cluster import JSON
from musterctl.gangs.read import may_list
from musterctl.output.listing import amounts

F = TypeVar("F", bound=Callable[..., Any])
AMOUNTS = ("capability", "deserved", "guarantee")
NONE = "none"
"""The amount that takes a limit away."""
_HUGE_PAGES = "hugepages-"
_INT32 = 2**31 - 1


def queue_options(*, parent: str | None, weight: int | None, reclaimable: bool | None) -> Callable[[F], F]:
    """Return a decorator that adds the options of a queue; these are the defaults, None leaves a field as it is."""

    def decorate(command: F) -> F:
        shown = weight is not None
        for option in reversed(
            (
                click.option("--parent", default=parent, show_default=shown, help="The queue above."),
                click.option(
                    "--weight",
                    type=click.IntRange(1, 65535),
                    default=weight,
                    show_default=shown,
                    help="Its part of what quotas leave.",
                ),
                click.option(
                    "--priority",
                    type=click.IntRange(-_INT32, _INT32),
                    help="Queues with a higher one come first.  [default: 0]" if shown else "Higher ones come first.",
                ),
                click.option("--capability", multiple=True, help="The most that it may use: cpu=64,nvidia.com/gpu=8."),
                click.option(
                    "--deserved",
                    multiple=True,
                    help="Its quota, which it gets before weights count, in the same form.",
                ),
                click.option(
                    "--guarantee", multiple=True, help="Resources that no other queue can take, in the same form."
                ),
                click.option(
                    "--reclaimable/--not-reclaimable",
                    default=reclaimable,
                    help="Let other queues reclaim what it borrowed, or not.",
                ),
                click.option(
                    "--namespace-selector",
                    default="" if shown else None,
                    metavar="LABELS",
                    help="The namespaces that may use it: 'team=vision,env in (a,b)'.",
                ),
                click.option(
                    "--pool",
                    help="Of a root queue: the node pool of its tree."
                    + ("" if shown else f" `{NONE}` is the default pool."),
                ),
            )
        ):
            command = option(command)
        return command

    return decorate


def queue_content(options: Mapping[str, Any]) -> JSON:
    """Return spec, annotations and labels that the options ask for, as an object or a merge patch.

    An amount of `none` becomes null, which takes the limit away. BadParameter if an option is not valid.
    """
    selector: str | None = options["namespace_selector"]
    try:
        read_selector(selector or "")
    except ValueError as error:
        raise click.BadParameter(str(error), None, None, "--namespace-selector") from error
    given = {name: options[name] for name in ("parent", "weight", "priority", "reclaimable")}
    spec: JSON = {name: value for name, value in given.items() if value is not None}
    for name in AMOUNTS:
        typed = amounts(options[name], f"--{name}")
        wanted = {resource: None if amount == NONE else amount for resource, amount in typed.items()}
        if wanted:
            spec[name] = {"resource": wanted} if name == "guarantee" else wanted
    content: JSON = {"spec": spec} if spec else {}
    metadata: JSON = {}
    if selector is not None:
        metadata["annotations"] = {NAMESPACE_SELECTOR: selector or None}
    if pool := options["pool"]:
        metadata["labels"] = {NODE_POOL: None if pool == NONE else pool}
    return content | ({"metadata": metadata} if metadata else {})


def check_resources(client: Client, options: Mapping[str, Any]) -> None:
    """Refuse an unknown resource that is nearly one that the cluster has; warn of any other unknown one."""
    asked = {name: amounts(options[name], f"--{name}") for name in AMOUNTS}
    if not any(asked.values()):
        return
    known = known_resources(client)
    for option, typed in asked.items():
        for resource in typed:
            if resource in known or resource.startswith(_HUGE_PAGES):
                continue
            near = near_resource(resource, known)
            if near:
                message = f"{resource} is an unknown resource: no node and no queue has it; did you mean {near}?"
                raise click.BadParameter(message, None, None, f"--{option}")
            click.echo(f"Warning: {resource} is an unknown resource: no node and no queue has it", err=True)


def known_resources(client: Client) -> set[str]:
    """Return the resources that nodes offer, and those in queues, as far as the user may list them."""
    known = set(EVERYWHERE)
    for node in may_list(client, NODES) or ():
        known |= node.status.allocatable.keys()
    for queue in may_list(client, QUEUES) or ():
        spec = queue.spec
        known |= {*spec.capability, *spec.deserved, *spec.guarantee.resource, *queue.status.allocated}
    return known
