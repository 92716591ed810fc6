"""What the extenders of a cluster run with, as they publish it: the planner's configuration, and what is suspect."""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import click

from extender.planner.cycle import report_of
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS
from muster.api.muster.configuration import PUBLISHED, PublishedConfig, Suspects, name_for
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.muster.usage import Usage, read_usage, silent_s
from muster.api.names import SYSTEM_NAMESPACE, USAGE, WEBHOOKS
from muster.kube.client import Client
from muster.kube.errors import APIError, Forbidden, NotFound
from musterctl.cluster import whole
from musterctl.output.listing import short
from musterctl.plane.rights import CLUSTER_LEASE

_OTHER: Final = "--scheduler-config names another"
_BUILT_IN: Final = "nodes are suspect by the list of this version"


def published_by(client: Client, pools: Iterable[str]) -> dict[str, PublishedConfig | Forbidden]:
    """Return what the extender of each node pool has published, or why it may not be read; others are left out."""
    found: dict[str, PublishedConfig | Forbidden] = {}
    for pool in pools:
        try:
            told = published_in(client, pool)
        except Forbidden as error:
            found[pool] = error
        else:
            found |= {pool: told} if told else {}
    return found


def config_of(told: PublishedConfig | Forbidden | None, pool: str) -> str:
    """Return the text of the configuration that runs in a node pool, of what was published there.

    "" is the default one, which counts where none can be read. A ClickException tells of one that this installation
    cannot plan with.
    """
    if isinstance(told, Forbidden):
        click.echo(f"Note: the default configuration of the planner counts, as {told.message}; {_OTHER}", err=True)
        return ""
    text = (told.text if told else "") or ""
    errors = report_of(text).errors if text else []
    if told and errors:
        where = f"{told.metadata.namespace}/{name_for(pool)}"
        raise click.ClickException(
            f"the planner's configuration that runs (ConfigMap {where}) cannot be used here: {'; '.join(errors)}; "
            f"install here what runs there, or {_OTHER}"
        )
    return text


def suspects_of(told: dict[str, PublishedConfig | Forbidden], pools: Iterable[str]) -> dict[str, Suspects]:
    """Return what makes a node suspect, by node pool; a note tells of pools of which it is not known."""
    found: dict[str, Suspects] = {}
    for pool in pools:
        one = told.get(pool)
        if isinstance(one, Forbidden):
            note_unknown(pool, one.message)
        elif one is None or one.suspects is None:
            note_unknown(pool, f"the extender has not published another (ConfigMap {name_for(pool)})")
        else:
            found[pool] = one.suspects
    return found


def note_unknown(pool: str, why: str) -> None:
    """Say on standard error that it is not known what makes a node of a pool suspect."""
    click.echo(f"Note: {_BUILT_IN}{f' in pool {pool}' if pool else ''}, as {why}", err=True)


def published_in(client: Client, pool: str = DEFAULT_POOL) -> PublishedConfig | None:
    """Return what the extender has published, wherever Muster is installed; None if it has not, or there is none."""
    name = name_for(pool)
    for namespace in dict.fromkeys((SYSTEM_NAMESPACE, CLUSTER_LEASE[0])):
        with suppress(NotFound):
            return client.get(PUBLISHED, name, namespace)
    namespace = _installed_in(client)
    with suppress(NotFound):
        return client.get(PUBLISHED, name, namespace) if namespace else None
    return None


def usage_in(client: Client, namespace: str) -> Usage | None:
    """Return what queues have used, as the recorder of the history has published it; None if it has not."""
    try:
        usage = read_usage(client.get(PUBLISHED, USAGE, namespace).data or {})
    except NotFound:
        return None
    except (APIError, ValueError) as error:
        click.echo(f"Note: budgets of queues count as not used, as ConfigMap {USAGE} cannot be read: {error}", err=True)
        return None
    if silent := silent_s(usage, time.time()):
        click.echo(
            f"Note: the recorder of the history has published nothing for {short(silent)}: of budgets, what gangs have "
            "held since then that have ended does not count here",
            err=True,
        )
    return usage


def _installed_in(client: Client) -> str:
    """Return the namespace of Muster's webhook, "" if that is not known."""
    with suppress(APIError):  # few users may read it, and then it is not known
        for webhook in client.get(whole(WEBHOOK_CONFIGURATIONS[0]), WEBHOOKS).get("webhooks") or []:
            return str(((webhook.get("clientConfig") or {}).get("service") or {}).get("namespace") or "")
    return ""
