"""Reader of the data that a cluster's extenders publish for commands, such as the planner's configuration."""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from gangs.words import short
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS
from muster.api.muster.configuration import PUBLISHED, TIMING, PublishedConfig, Suspects, name_for
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.muster.usage import PublishedUsage, read_usage, silent_s
from muster.api.names import SYSTEM_NAMESPACE, USAGE, WEBHOOKS
from muster.kube.client import Client
from muster.kube.errors import APIError, Forbidden, NotFound
from musterctl.cluster import whole
from musterctl.plane.rights import CLUSTER_LEASE

if TYPE_CHECKING:
    from extender.planner.api import PublishedInputs

_OTHER: Final = "--scheduler-config names another"
BUILT_IN_SUSPECTS: Final = "the default list of this version decides which nodes are suspect"
DEFAULT_TIMING: Final = "the planner's default timing is used"


def published_by(client: Client, pools: Iterable[str]) -> dict[str, PublishedConfig | Forbidden]:
    """Return the published data of each node pool's extender, or the reason why the data cannot be read."""
    found: dict[str, PublishedConfig | Forbidden] = {}
    for pool in pools:
        try:
            published = published_in(client, pool)
        except Forbidden as error:
            found[pool] = error
        else:
            found |= {pool: published} if published else {}
    return found


def config_of(published: PublishedConfig | Forbidden | None, pool: str) -> str:
    """Return the text of a node pool's current configuration, from the published data.

    "" means the default configuration, which is also used if the published configuration cannot be read. Raise
    ClickException if this installation cannot use the configuration.
    """
    if isinstance(published, Forbidden):
        click.echo(
            f"Note: the planner's default configuration is used, because {published.message}; {_OTHER}", err=True
        )
        return ""
    text = (published.text if published else "") or ""
    if not published or not text:
        return text
    from extender.planner.api import report_of  # noqa: PLC0415 - a second of CPU, which `muster nodes` does without

    if errors := report_of(text).errors:
        where = f"{published.metadata.namespace}/{name_for(pool)}"
        raise click.ClickException(
            f"the extender's current configuration (ConfigMap {where}) cannot be used here: {'; '.join(errors)}; "
            f"install the extender's plugins here, or {_OTHER}"
        )
    return text


def suspects_of(published: dict[str, PublishedConfig | Forbidden], pools: Iterable[str]) -> dict[str, Suspects]:
    """Return the rules for suspect nodes that each node pool's extender has published.

    A note on standard error names the pools without published rules.
    """
    found: dict[str, Suspects] = {}
    for pool in pools:
        one = published.get(pool)
        if isinstance(one, Forbidden):
            note_unknown(BUILT_IN_SUSPECTS, pool, one.message)
        elif one is None or one.suspects is None:
            note_unknown(BUILT_IN_SUSPECTS, pool, _unpublished(pool))
        else:
            found[pool] = one.suspects
    return found


def inputs_of(published: dict[str, PublishedConfig | Forbidden], pools: Iterable[str]) -> "dict[str, PublishedInputs]":
    """Return the inputs of planner cycles that each node pool's extender has published.

    A note on standard error names the pools without published inputs.
    """
    from extender.planner.api import published_inputs  # noqa: PLC0415 - as above

    found: dict[str, PublishedInputs] = {}
    for pool in pools:
        one = published.get(pool)
        if isinstance(one, Forbidden):
            note_unknown(DEFAULT_TIMING, pool, one.message)
        elif one is None or TIMING not in (one.data or {}):
            note_unknown(DEFAULT_TIMING, pool, _unpublished(pool))
        if isinstance(one, PublishedConfig):
            found[pool], problems = published_inputs(one.data or {})
            for problem in problems:
                click.echo(f"Note: in ConfigMap {name_for(pool)} {problem}", err=True)
    return found


def _unpublished(pool: str) -> str:
    return f"the extender has not published another (ConfigMap {name_for(pool)})"


def note_unknown(what: str, pool: str, why: str) -> None:
    """Print a note on standard error about the defaults for a pool whose extender has published no data."""
    click.echo(f"Note: {what}{f' in pool {pool}' if pool else ''}, as {why}", err=True)


def published_in(client: Client, pool: str = DEFAULT_POOL) -> PublishedConfig | None:
    """Return the published data of the extender, in whichever namespace Muster is installed; None without such data."""
    name = name_for(pool)
    for namespace in dict.fromkeys((SYSTEM_NAMESPACE, CLUSTER_LEASE[0])):
        with suppress(NotFound):
            return client.get(PUBLISHED, name, namespace)
    namespace = _installed_in(client)
    with suppress(NotFound):
        return client.get(PUBLISHED, name, namespace) if namespace else None
    return None


def usage_in(client: Client, namespace: str) -> PublishedUsage | None:
    """Return the usage of queues that the recorder has published; None if nothing is published."""
    try:
        usage = read_usage(client.get(PUBLISHED, USAGE, namespace).data or {})
    except NotFound:
        return None
    except (APIError, ValueError) as error:
        click.echo(
            f"Note: the budgets of queues are treated as unused, because ConfigMap {USAGE} cannot be read: {error}",
            err=True,
        )
        return None
    if silent := silent_s(usage, time.time()):
        click.echo(
            f"Note: the recorder of the history has published no usage for {short(silent)}: budgets do not "
            f"include gangs that "
            "have ended since then",
            err=True,
        )
    return usage


def _installed_in(client: Client) -> str:
    """Return the namespace of Muster's webhook; "" if the namespace is unknown."""
    with suppress(APIError):  # few users may read it; otherwise it stays unknown
        for webhook in client.get(whole(WEBHOOK_CONFIGURATIONS[0]), WEBHOOKS).get("webhooks") or []:
            return str(((webhook.get("clientConfig") or {}).get("service") or {}).get("namespace") or "")
    return ""
