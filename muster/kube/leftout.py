"""Reads objects again that a cache has left out for lack of room, when there is room."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.kube.budget import Budget
from muster.kube.client import Client
from muster.kube.errors import APIError
from muster.kube.reads import Selectors
from muster.kube.store import Mirror

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

AGAIN_S = 5.0
"""Between two looks: whoever deletes and creates objects all the time must not have each change cost a request."""
_TIMEOUT_S = 60.0


async def read_left_out(
    client: Client,
    resource: Resource[T],
    mirror: Mirror[T],
    budget: Budget[T],
    selectors: Selectors,
    random: Callable[[], float],
) -> None:
    """Do so from time to time, until it is cancelled."""
    while True:
        await asyncio.sleep(AGAIN_S * (1 + random()))
        for key in budget.again():
            try:
                await _read(client, resource, mirror, budget, selectors, key)
            except APIError as error:
                log.info("cannot read what was left out", resource=resource.plural, name=key, why=str(error))
            except Exception:  # a defect must not leave out objects for good
                log.exception("reading what was left out failed", resource=resource.plural, name=key)


async def _read(
    client: Client, resource: Resource[T], mirror: Mirror[T], budget: Budget[T], selectors: Selectors, key: str
) -> None:
    """Read one by a list, as some processes have no other right; it is there no more if that does not have it."""
    namespace, _, name = key.rpartition("/")
    named = f"metadata.name={name}"
    field = f"{selectors['field_selector']},{named}" if selectors.get("field_selector") else named
    label = selectors.get("label_selector", "")
    found = await client.on_loop.list(
        resource, namespace, label_selector=label, field_selector=field, timeout_s=_TIMEOUT_S
    )
    if not found:
        budget.drop(key)
    elif budget.left_out(key):  # else the watch has shown another version of it meanwhile, or its end
        mirror.put(found[0])
