"""From a TrainJob and its runtime to `Info`, and to the components that run it."""

from typing import Literal

from muster.api.trainer import TrainJob
from muster.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from muster.runtime.component import Compiled
from muster.runtime.framework import Framework
from muster.runtime.info import Info

Runtime = TrainingRuntime | ClusterTrainingRuntime
Target = Literal["Job", "JobSet"]
"""What makes the pods of a TrainJob: a Job of Muster's (batch.volcano.sh), or a JobSet."""


def describe(train_job: TrainJob, runtime: Runtime, target: Target = "Job") -> Info:
    """What plugins need to know of a TrainJob."""
    raise NotImplementedError


def compile_train_job(train_job: TrainJob, runtime: Runtime, framework: Framework, target: Target = "Job") -> Compiled:
    """Plan and components of a TrainJob; with anything wrong only the findings, all together.

    Errors have paths in the TrainJob (`spec.trainer.env`). Runtime patches are checked against the runtime's template
    before they are merged into it. Neither argument is changed.
    """
    return framework.compile(describe(train_job, runtime, target))
