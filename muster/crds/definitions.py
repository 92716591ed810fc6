"""The kinds that Muster installs, and what their Structs cannot say of them: kinds.yaml and overlays.yaml beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from muster.api.base import Resource
from muster.api.kubeflow import trainer, trainingruntime
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano import batch, cron, flow, scheduling, topology
from muster.crds.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One kind, without its schema. `about` opens its section in docs/api.md."""

    resource: Resource[Any]
    short_names: Sequence[str] = ()
    columns: Sequence[dict[str, Any]] = ()
    """Columns of `kubectl get`, as the CRD has them; those with a priority above 0 are shown with `-o wide` only."""
    status_subresource: bool = False
    about: str


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    content.pop("_parts", None)  # what anchors stand for
    return content


_KINDS: Final = (
    *(
        batch.JOBS,
        scheduling.POD_GROUPS,
        scheduling.QUEUES,
        batch.COMMANDS,
        flow.JOB_FLOWS,
        flow.JOB_TEMPLATES,
        cron.CRON_JOBS,
        PLACEMENTS,
        topology.HYPER_NODES,
    ),
    *(trainer.TRAIN_JOBS, trainingruntime.TRAINING_RUNTIMES, trainingruntime.CLUSTER_TRAINING_RUNTIMES),
)
_TEXTS: Final = _read("kinds.yaml")
DEFINITIONS: Final = tuple(Definition(resource=each, **_TEXTS[each.kind]) for each in _KINDS)
OVERLAYS: Final[dict[str, Schema]] = _read("overlays.yaml")
"""Overlays of the schemas of Structs, by name: server-side defaults, required fields, rules in CEL, list keys."""
