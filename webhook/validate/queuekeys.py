"""Checks of a Queue's keys under `muster.dev/`: misspelt keys are refused, and budgets may cause a warning."""

from collections.abc import Iterator
from difflib import get_close_matches

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.volcano.scheduling import Queue
from muster.volcano import queuelimits
from webhook.objects.names import WRITTEN

_KEYS = frozenset({names.NODE_POOL, *names.QUEUE_KEYS})
_CLOSE = 0.85
"""Minimum similarity by difflib; it is high because all keys have the same domain, which is half of most keys."""


def check_keys(new: Queue, old: Queue | None = None) -> Findings:
    """Refuse new keys that look like misspelt keys of Muster, because a misspelt limit would have no effect.

    Warn about other unknown keys, which may be keys of old versions.
    """
    kept, found = {*old.metadata.labels, *old.metadata.annotations} if old else set[str](), Findings()
    for place, known, given in (
        ("labels", {names.NODE_POOL}, new.metadata.labels),
        ("annotations", names.QUEUE_KEYS, new.metadata.annotations),
    ):
        for key in sorted(given.keys() - known - kept - WRITTEN):
            if key.startswith(f"{names.DOMAIN}/"):
                advice = f"it is {'an annotation' if place == 'labels' else 'a label'}" if key in _KEYS else ""
                for near in [] if advice else get_close_matches(key, sorted(known), n=1, cutoff=_CLOSE):
                    advice = f"did you mean {near}?"
                path = f"metadata.{place}[{key}]"
                what = f"is no {place[:-1]} of a Queue known to Muster, so it has no effect"
                if advice:
                    found.errors.append(FieldError(path, f"{what}; {advice}", given[key]))
                else:
                    found.warnings.append(f"{path}: {what}; a Queue has {', '.join(sorted(known))}")
    return found


def forgotten_budget(new: Queue, old: Queue | None) -> Iterator[str]:
    """Return a warning about a new enforced budget if the recorded usage would be lost with the recorder's pod."""
    limits = [queuelimits.limits_of(each.metadata.annotations) for each in (new, old) if each]
    enforced = [each.budgets if each.enforced else () for each in limits]
    if enforced[0] and enforced[0] not in enforced[1:]:
        yield (
            f"metadata.annotations[{names.BUDGET}]: the history has no durable store, so usage is lost with the "
            "recorder's pod, and budgets do not count lost usage. Set history.storage.size or history.database "
            "of the chart"
        )
