"""The page with a form for `muster simulate` and with the simulation's result."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from extender.explain.clusterdump import ClusterDump
from muster.api.kubernetes.core import NAMESPACES, PRIORITY_CLASSES
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from web.context import RequestContext
from web.slow import SlowWork
from web.views.whatif import OBJECTS, YAML_BYTES, TrialResult, WhatIfTrial, trial, tried

_slots: Final = SlowWork("try something")
"""Lock that limits the server to one simulation at a time, because other pages need the CPU time, too."""


def show(context: RequestContext) -> Response:
    """Return the form."""
    return _page(context, WhatIfTrial(namespace=context.query.get("namespace", "")), None, _namespaces(context))


def answer(context: RequestContext) -> Response:
    """Run the simulation that the form describes, and return a page with the result above the form."""
    found, namespaces = None, _namespaces(context)
    wanted = trial(context.form, namespaces)
    if not wanted.errors:
        with _slots.taken(context.caller.account):
            whole = context.caller.everything
            found = tried(wanted, namespaces, _dump(context), context.caller.scope, whole=whole)
    return _page(context, wanted, found, namespaces)


def _page(context: RequestContext, wanted: WhatIfTrial, found: TrialResult | None, namespaces: list[str]) -> Response:
    return context.page(
        "whatif.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if wanted.errors else HTTPStatus.OK,
        trial=wanted,
        answer=found,
        namespaces=namespaces,
        whole=context.caller.everything,
        most=YAML_BYTES,
        objects=OBJECTS,
    )


def _namespaces(context: RequestContext) -> list[str]:
    """Return the existing namespaces that the caller may see, `default` first."""
    there = {each.metadata.name for each in context.site.caches.all(NAMESPACES)} | set(context.view.namespaces)
    return sorted(filter(context.caller.scope.has, there), key=lambda each: (each != "default", each))


def _dump(context: RequestContext) -> ClusterDump:
    """Return the objects of the cluster with which a simulation starts.

    If the caller is not allowed to see the whole cluster, the result has only the objects for checking the requests of
    the caller's gangs.
    """
    whole = context.site.explainer.dump()
    if context.caller.everything:
        return whole
    own = ClusterDump(whole.taken_at, unread=frozenset({POD_GROUPS.full_name}))
    own.add_objects(PRIORITY_CLASSES, whole.objects_of(PRIORITY_CLASSES))
    own.add_objects(
        NAMESPACES, [each for each in whole.objects_of(NAMESPACES) if context.caller.scope.has(each.metadata.name)]
    )
    if context.caller.queues:
        own.add_objects(QUEUES, whole.objects_of(QUEUES))
    return own
