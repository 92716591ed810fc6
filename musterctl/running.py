"""The planner's configuration that runs in a cluster, as the extender publishes it."""

from contextlib import suppress

import click

from extender.planner.cycle import report_of
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS
from muster.api.muster.configuration import PUBLISHED, PublishedConfig, name_for
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.names import SYSTEM_NAMESPACE, WEBHOOKS
from muster.kube.client import Client
from muster.kube.errors import APIError, Forbidden, NotFound
from musterctl.cluster import whole
from musterctl.plane.rights import CLUSTER_LEASE

_OTHER = "--scheduler-config names another"


def running_config(client: Client, pool: str = DEFAULT_POOL) -> str:
    """Return the text of the configuration that runs in a node pool.

    "" is the default one, which counts where none can be read. A ClickException tells of one that this installation
    cannot plan with.
    """
    try:
        found = published_in(client, pool)
    except Forbidden as error:
        click.echo(f"Note: the default configuration of the planner counts, as {error.message}; {_OTHER}", err=True)
        return ""
    text = (found.text if found else "") or ""
    errors = report_of(text).errors if text else []
    if found and errors:
        where = f"{found.metadata.namespace}/{name_for(pool)}"
        raise click.ClickException(
            f"the planner's configuration that runs (ConfigMap {where}) cannot be used here: {'; '.join(errors)}; "
            f"install here what runs there, or {_OTHER}"
        )
    return text


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


def _installed_in(client: Client) -> str:
    """Return the namespace of Muster's webhook, "" if that is not known."""
    with suppress(APIError):  # few users may read it, and then it is not known
        for webhook in client.get(whole(WEBHOOK_CONFIGURATIONS[0]), WEBHOOKS).get("webhooks") or []:
            return str(((webhook.get("clientConfig") or {}).get("service") or {}).get("namespace") or "")
    return ""
