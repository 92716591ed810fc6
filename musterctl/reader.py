"""Reads what reports are about: a cluster, or a snapshot of one; `musterctl.planningoptions` has their options."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from extender.explain.clusterdump import ClusterDump
from extender.explain.pools import pools_of
from muster.api.muster.configuration import PublishedConfig
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.names import BUDGET, SYSTEM_NAMESPACE
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.cluster import Where
from musterctl.dumps import read_dump
from musterctl.running import config_of, note_unknown, published_by, suspects_of, usage_in


class Reader(NamedTuple):
    """A cluster, or a snapshot in its place, and the planner's configuration if another one is to count."""

    where: Where
    scheduler_config: Path | None = None
    snapshot: Path | None = None

    def __call__(self) -> ClusterDump:
        """Return a dump of the cluster, or that in the snapshot, with the configuration that runs there.

        Raises Forbidden for who may not list all of it.
        """
        dump = read_dump(self.where, self.scheduler_config, self.snapshot)
        pools = pools_of(dump)
        if self.snapshot is not None:
            for pool in pools:
                if pool not in dump.suspects:
                    note_unknown(pool, f"{self.snapshot} has no other")
            return dump
        with closing(self.where.client()) as client:
            told = published_by(client, pools)
            if any(BUDGET in queue.metadata.annotations for queue in dump.of(QUEUES)):
                known = (one for one in told.values() if isinstance(one, PublishedConfig))
                where = next((one.metadata.namespace for one in known), SYSTEM_NAMESPACE)
                dump.usage = usage_in(client, where)
        if self.scheduler_config is None:
            configs = {pool: config_of(told.get(pool), pool) for pool in pools}
            dump.scheduler_config = configs.pop(DEFAULT_POOL)
            dump.pool_configs = configs
        dump.suspects = suspects_of(told, pools)
        return dump

    def namespace(self, given: str | None) -> str:
        """Return the namespace that is given, else that of the kubeconfig's context; a snapshot has no context."""
        client = None if given else self.client()
        if client is None:
            return given or "default"
        with closing(client):
            return client.namespace

    def client(self) -> Client | None:
        """Return a client of the cluster; None for a snapshot, which says nothing beyond its dump."""
        return self.where.client() if self.snapshot is None else None
