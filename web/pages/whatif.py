"""Page of a form over `muster simulate`, and its outcome."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from extender.explain.clusterdump import ClusterDump, kind_name
from muster.api.kubernetes.core import NAMESPACES, PRIORITY_CLASSES
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from web.asked import RequestContext
from web.slow import SlowWork
from web.views.whatif import OBJECTS, YAML_BYTES, Trial, TrialResult, trial, tried

_slots: Final = SlowWork("try something")
"""One trial at a time: each may think for seconds, and other pages want the processor, too."""


def show(asked: RequestContext) -> Response:
    """Return the form."""
    return _page(asked, Trial(namespace=asked.query.get("namespace", "")), None)


def answer(asked: RequestContext) -> Response:
    """Try what the form says, and return the outcome above it."""
    found, namespaces = None, _namespaces(asked)
    wanted = trial(asked.form, namespaces)
    if not wanted.errors:
        with _slots.taken(asked.caller.account):
            whole = asked.caller.everything
            found = tried(wanted, namespaces, _dump(asked), asked.caller.scope, whole=whole)
    return _page(asked, wanted, found)


def _page(asked: RequestContext, wanted: Trial, found: TrialResult | None) -> Response:
    return asked.page(
        "whatif.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if wanted.errors else HTTPStatus.OK,
        trial=wanted,
        answer=found,
        namespaces=_namespaces(asked),
        whole=asked.caller.everything,
        most=YAML_BYTES,
        objects=OBJECTS,
    )


def _namespaces(asked: RequestContext) -> list[str]:
    """Return the namespaces to choose from, `default` first: those that exist, as far as the caller may see them."""
    there = {each.metadata.name for each in asked.site.caches.all(NAMESPACES)} | set(asked.view.namespaces)
    mine = sorted(each for each in there if asked.caller.scope.has(each))
    return sorted(mine, key=lambda each: each != "default")


def _dump(asked: RequestContext) -> ClusterDump:
    """Return the cluster; for who may not see all of it what a new gang's demands are compared with."""
    whole = asked.site.explainer.dump()
    if asked.caller.everything:
        return whole
    own = ClusterDump(whole.taken_at, unread=frozenset({kind_name(POD_GROUPS)}))
    own.add_objects(PRIORITY_CLASSES, whole.objects_of(PRIORITY_CLASSES))
    own.add_objects(
        NAMESPACES, [each for each in whole.objects_of(NAMESPACES) if asked.caller.scope.has(each.metadata.name)]
    )
    if asked.caller.queues:
        own.add_objects(QUEUES, whole.objects_of(QUEUES))
    return own
