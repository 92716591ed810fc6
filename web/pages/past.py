"""The pages History and Usage: events of gangs, and usage by user, read from the recorder's store."""

from starlette.responses import Response

from history.answers import recorded_until
from history.read import events_of_gang, gangs, gaps
from history.usage import KEYS, usage
from web.context import RequestContext
from web.views.past import DAYS, GANGS, Period, history_view, past_gang, period, steps_of, usage_csv, usage_view


def show(context: RequestContext) -> Response:
    """Return the list of gangs that existed in a period."""
    store, wanted, now = context.site.history, _period(context), context.site.now()
    if store is None:
        return context.page("nohistory.html", title="History")
    since, queue, namespace = wanted.since(now), wanted.queue or None, wanted.namespace or None
    user = wanted.user or None
    found = gangs(store, context.caller.scope, queue=queue, namespace=namespace, user=user, since=since, limit=GANGS)
    shown = history_view(found, gaps(store, since), wanted, now, recorded_until=recorded_until(store))
    return context.page("history.html", view=shown, days=DAYS)


def one(context: RequestContext) -> Response:
    """Return the page with the events of one gang: of the requested UID, or else the last gang of this name."""
    store, now, scope = context.site.history, context.site.now(), context.caller.scope
    namespace, name, uid = context.path["namespace"], context.path["name"], context.query.get("uid", "")
    if store is None:
        return context.page("nohistory.html", title="History")
    named = gangs(store, scope, namespace=namespace, name=name) if scope.has(namespace) else []
    found = [each for each in named if uid in {"", each.uid}]
    if not found:
        raise context.missing(f"gang {name} in namespace {namespace} in the history")
    happened = events_of_gang(store, scope, namespace, name, uid=found[0].uid)
    return context.page("story.html", gang=past_gang(found[0], now), steps=steps_of(happened, now))


def used(context: RequestContext) -> Response:
    """Return the page with the table of usage, or the usage as CSV."""
    store, wanted, now = context.site.history, _period(context), context.site.now()
    if store is None:
        return context.page("nohistory.html", title="Usage")
    since, queue, namespace = wanted.since(now), wanted.queue or None, wanted.namespace or None
    rows = usage(store, context.caller.scope, wanted.by, since=since, namespace=namespace, queue=queue)
    shown = usage_view(rows, wanted, now, recorded_until=recorded_until(store))
    if context.request.url.path.endswith(".csv"):
        name = {"content-disposition": 'attachment; filename="usage.csv"'}
        return Response(usage_csv(rows, wanted.by), media_type="text/csv", headers=name)
    return context.page("usage.html", view=shown, days=DAYS, keys=KEYS)


def _period(context: RequestContext) -> Period:
    return period(context.query, context.query.getlist("by"))
