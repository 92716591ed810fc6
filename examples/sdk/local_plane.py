"""Options for `muster up`, whose nodes are simulated: no process runs in the pods, so a patch sets when they end.

On a real cluster the annotations mean nothing: leave the option out.
"""

from kubeflow.trainer.options import (
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)


def ends(run_s: float, *jobs: str, exit_code: int = 0) -> RuntimePatch:
    """Let the pods of these replicated jobs (by default `node`) end after a while."""
    annotations = {"kwok.muster.dev/run-seconds": str(run_s), "kwok.muster.dev/exit-code": str(exit_code)}
    template = JobTemplatePatch(spec=JobSpecPatch(template=PodTemplatePatch(metadata={"annotations": annotations})))
    patches = [ReplicatedJobPatch(name=job, template=template) for job in jobs or ("node",)]
    spec = JobSetTemplatePatch(spec=JobSetSpecPatch(replicated_jobs=patches))
    return RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=spec))
