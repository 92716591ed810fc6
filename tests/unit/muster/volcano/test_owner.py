"""What belongs to a Volcano Job."""

from muster.api.batch import Job
from muster.api.meta import ObjectMeta
from muster.volcano.owner import job_of, owner_of


def test_owner() -> None:
    """An object belongs to the Volcano Job that controls it, and to no other kind of Job."""
    job = Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"))
    meta = ObjectMeta(name="j-w-0", namespace="n", owner_references=[owner_of(job)])
    assert job_of(meta) == ("n/j", "u")
    meta.owner_references[0].api_version = "batch/v1"
    assert job_of(meta) is None
    assert job_of(ObjectMeta()) is None
