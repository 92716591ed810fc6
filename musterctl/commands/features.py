"""`muster features`: the table of features, with the maturity, the first version, and a way to disable each feature.

The page docs/features.md is generated from this table. This page defines the levels of maturity, which are the same as
for Kubernetes features.
"""

from operator import attrgetter
from typing import Final, Literal, get_args

import click
import msgspec
from msgspec import Struct

from muster.api.names import DOMAIN
from musterctl.output.listing import show_object
from musterctl.output.table import show_rows

Maturity = Literal["alpha", "beta", "stable"]


class Feature(Struct, frozen=True):
    """One feature."""

    name: str
    maturity: Maturity
    off: str
    """How to switch the feature off, or on if it is off by default; settings are in back quotes."""
    page: str
    """The page and the heading in docs that describe the feature."""
    names: tuple[str, ...] = ()
    """Labels, annotations, resources and conditions of Muster that belong to the feature."""
    since: str = "0.1.0"


def _of(names: str) -> tuple[str, ...]:
    return tuple(f"{DOMAIN}/{name}" for name in names.split())


FEATURES: Final = (
    Feature("gangs", "stable", "label pods or their namespace `muster.dev/managed: false`", "concepts.md",
            _of("managed gang min-member task-priority rank size leader")),
    Feature("Volcano Jobs, CronJobs and JobFlows", "stable", "set `controller.enabled: false`", "jobs.md",
            _of("compat")),
    Feature("queues and fair shares", "stable", "configure no plugin `proportion`", "queues.md",
            _of("queue queue-locked namespace-selector weights")),
    Feature("job plugins", "stable", "use no job plugins, or set `controller.enabled: false`", "jobs.md"),
    Feature("environment of frameworks", "beta", "omit the label `muster.dev/framework`", "frameworks.md",
            _of("framework")),
    Feature("TrainJobs", "beta", "list their CRDs in `crds.exclude`, set `runtimes.enabled: false`", "trainjobs.md",
            _of("priority-class")),
    Feature("TrainJobs as JobSets", "alpha", "off unless `trainJobsAs: JobSet`", "trainjobs.md#as-jobsets"),
    Feature("progress of TrainJobs", "alpha", "off unless `trainJobs.reports.enabled`", "trainjobs.md#progress"),
    Feature("elastic TrainJobs", "alpha", "omit the annotation `muster.dev/elastic`", "trainjobs.md",
            _of("elastic num-nodes")),
    Feature("preemption and reclaim", "beta", "configure no actions `preempt`, `reclaim`", "preemption.md",
            _of("preempt-min-runtime reclaim-min-runtime")),
    Feature("consolidation", "alpha", "configure no action `consolidate`", "preemption.md"),
    Feature("eviction notices", "beta", "set `longestNotice: 0`", "preemption.md#notice",
            _of("evict-notice max-evict-notice evict-at evict-for EvictionNotice checkpoint evict-ready")),
    Feature("restart budgets", "beta", "omit the annotation `muster.dev/restart-budget`", "preemption.md",
            _of("restart-budget infrastructure-exit-codes")),
    Feature("reservations", "beta", "set the argument heads: 0 of plugin `reservations`", "queues.md#reservations",
            _of("reservations expected-runtime")),
    Feature("repair after faults", "beta", "configure no action `repair`", "faults.md#repair",
            _of("on-node-fault node-fault-grace avoid-failed-node")),
    Feature("spare slots", "alpha", "omit the annotation `muster.dev/spares`", "faults.md#spares",
            _of("spares borrow-spares runs-on-spare")),
    Feature("topology", "beta", "configure no plugin `topology`", "topology.md",
            _of("topology topology-required topology-preferred topology-slice-required topology-slice-size"
                " topology-group")),
    Feature("shared GPUs", "beta", "omit the annotation `gpu-fraction`", "dynamic-resources.md#shared-gpus",
            _of("gpu-devices gpu-portion")),
    Feature("resource claims", "beta", "configure no plugin `dynamicresources`", "dynamic-resources.md"),
    Feature("order by fragmentation", "alpha", "configure no plugin `fragmentation`", "dynamic-resources.md"),
    Feature("limits by user and GPU model, budgets", "alpha", "omit annotations of a queue: `muster.dev/max-per-user`, "
            "`muster.dev/max-by-model`, `muster.dev/budget-mode`", "queues.md",
            _of("max-per-user max-by-model limit-windows budget budget-mode")),
    Feature("requests for nodes", "beta", "off unless an annotation sets `muster.dev/scale-up`", "autoscaling.md",
            _of("scale-up scale-up-class scale-up-parameters scale-up-timeout safe-to-evict")),
    Feature("node pools", "alpha", "off unless `pools`", "autoscaling.md#node-pools",
            _of("node-pool")),
    Feature("native PodGroups", "beta", "set `nativePodGroups: false`", "native-podgroups.md"),
    Feature("the cluster's own kube-scheduler", "beta", "off unless `scheduler.mode: cluster`", "operations.md",
            _of("member binding")),
    Feature("resource groups", "beta", "off unless `webhook.resourceGroups`", "admission.md#resource-groups"),
    Feature("web page", "beta", "off unless `web.enabled`", "web.md"),
    Feature("history and usage", "beta", "off unless `history.enabled`", "history.md"),
    Feature("recording and replay", "beta", "off unless `extender.record.enabled`", "replay.md"),
    Feature("traces", "alpha", "off unless `traces.endpoint`", "operations.md#traces"),
    Feature("certificates of the webhook", "beta", "set `certificates.mode: provided`", "certificates.md",
            _of("rotate")),
    Feature("alerts and dashboard", "beta", "off unless `metrics.rules`, `metrics.dashboard`", "metrics.md"),
)  # fmt: skip
INTERNAL: Final = _of(
    "changed-by created-by delete-after epoch grouped-templates held-replicas independent-pods indivisible later-tasks"
    " member-index moved-to native-group node placement resumed-at reviewed runtime-version scale-up-attempt train-job"
    " train-job-spec workload"
)
"""Names that only Muster writes."""
COLUMNS: Final = (
    *(("FEATURE", "name"), ("MATURITY", "maturity"), ("SINCE", "since"), ("HOW TO DISABLE", "off"), ("PAGE", "page")),
)


@click.command()
@click.option("--maturity", type=click.Choice(get_args(Maturity)), help="Only features of this maturity.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def features(*, maturity: Maturity | None, output: str) -> None:
    """Lists features, their maturity, and how to disable each feature.

    For a feature that is off by default, the list shows the setting that enables the feature. The page docs/features.md
    has the same table.
    """
    found = [each for each in FEATURES if maturity in {None, each.maturity}]
    if output == "table":
        show_rows([(title, attrgetter(name)) for title, name in COLUMNS], found)
    else:
        show_object({"features": msgspec.to_builtins(found)}, output)
