"""Adapters: what each kind of owner says about its pods: my rank, how many we are, where rank 0 is.

`base` has what all of them share, `choose` picks the one for a pod; each other module knows one kind of owner. They
get the owner as it was read and ask nobody.
"""

from muster.runtime.adapters.base import Adapter, OwnerError
from muster.runtime.adapters.choose import adapter_for, source_of
from muster.runtime.adapters.job import IndexedJobAdapter, JobSetAdapter, job_adapter

__all__ = ["Adapter", "IndexedJobAdapter", "JobSetAdapter", "OwnerError", "adapter_for", "job_adapter", "source_of"]
