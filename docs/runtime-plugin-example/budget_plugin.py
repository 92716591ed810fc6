"""A runtime plugin: TrainJobs with a budget, e.g. annotation `example.com/budget-hours: "40"`.

Each of them gets an object `Budget` of a kind of its own. Whoever keeps the accounts writes its status; once it is
spent the TrainJob has failed. A TrainJob without the annotation is none of this plugin's business.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from muster.api.fields import FieldError, Findings
from muster.runtime.info import Info
from muster.runtime.plan import Component, Plan, owned

HOURS = "example.com/budget-hours"
VARIABLE = "BUDGET_HOURS"


class BudgetPlugin:
    """Takes part wherever it has a method: validation, pods, components, watched kinds, status."""

    name = "Budget"

    def validate(self, info: Info) -> Findings:
        """Admission refuses a TrainJob whose budget is no number."""
        hours = _hours(info)
        if not hours or hours.isdecimal():
            return Findings()
        path = f"metadata.annotations[{HOURS}]"
        return Findings([FieldError(path, "must be a number of hours, for example 40", hours)])

    def enforce_pod_spec(self, info: Info) -> None:
        """Add the number of hours to the trainers' environment."""
        hours = _hours(info)
        for pod_set in info.trainers if hours else ():
            if pod_set.target:
                pod_set.target.set(self.name, {VARIABLE: (hours, HOURS)})

    def build(self, plan: Plan) -> Iterable[Component]:
        """Yield the Budget; Muster creates it before the pods, updates it, and deletes it with the TrainJob."""
        containers = (container for pod_set in plan.pod_sets for container in pod_set.containers)
        found = [each.value for container in containers for each in container.env if each.plugin == self.name]
        if found:
            manifest = {
                "apiVersion": "example.com/v1",
                "kind": "Budget",
                "metadata": owned(plan.owner, plan.owner.name),
                "spec": {"hours": int(str(found[0]))},
            }
            yield Component(manifest, self.name)

    def watched(self) -> Iterable[str]:
        """Return the kinds whose changes cause a pass over their TrainJob."""
        return ["budgets.example.com"]

    def status(self, components: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return the end of the TrainJob, once its Budget is spent; None before."""
        spent = [each for each in components if each["kind"] == "Budget" and each.get("status", {}).get("spent")]
        if not spent:
            return None
        message = f"its budget of {spent[0]['spec']['hours']} hours is spent"
        return {"conditions": [{"type": "Failed", "status": "True", "reason": "BudgetSpent", "message": message}]}


def _hours(info: Info) -> str:
    return info.train_job.metadata.annotations.get(HOURS, "") if info.train_job else ""
