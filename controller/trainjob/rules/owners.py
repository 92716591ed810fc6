"""Whose an object is that has a name which a TrainJob needs."""

from typing import Any

from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.meta import ObjectMeta


def belongs(meta: ObjectMeta, train_job: TrainJob) -> bool:
    """Whether the TrainJob controls the object: this one, not an earlier one of its name."""
    owner = meta.controller
    return owner is not None and owner.uid == train_job.metadata.uid


def told(what: str, meta: ObjectMeta, train_job: TrainJob) -> dict[str, Any]:
    """The obstacle that an object of somebody else is: what it says, and whether it will be over by itself."""
    owner = meta.controller
    if owner and owner.kind == TRAIN_JOBS.kind and owner.name == train_job.metadata.name:
        message = f"{what} of an earlier TrainJob of this name is still there; it is about to go"
        return {"message": message, "passing": True}
    whose = f"belongs to {owner.kind} {owner.name}" if owner else "belongs to nobody"
    return {
        "message": f"{what} exists already and {whose}, so it is not changed; delete it, or delete this TrainJob and "
        "give it another name"
    }
