"""The preempt verb, which returns the candidate nodes on which kube-scheduler may evict pods for another pod."""

import msgspec

from extender.cluster import Live
from muster.api.kubernetes.extender import ExtenderPreemptionArgs, ExtenderPreemptionResult

DECODE_PREEMPTION = msgspec.json.Decoder(ExtenderPreemptionArgs)


def preempt(cluster: Live, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
    """Exclude nodes whose victims would leave a running gang with too few members, if other nodes remain.

    Muster's profiles never call this verb.
    """
    candidates = args.node_name_to_meta_victims or {}
    harmless = {
        node: victims
        for node, victims in candidates.items()
        if not _breaks_a_gang(cluster, [victim.uid for victim in victims.pods])
    }
    return ExtenderPreemptionResult(node_name_to_meta_victims=harmless or candidates)


def _breaks_a_gang(cluster: Live, uids: list[str]) -> bool:
    """Return True if a gang would have too few members without these pods."""
    records = [record for uid in uids if (record := cluster.state.pods.get(uid)) is not None]
    for key in {record.gang for record in records if record.gang}:
        cluster.state.refresh_gang(key)
        gang = cluster.state.gang(key)
        if gang is None or not gang.started:
            continue
        lost = {record.uid for record in records if record.gang == key}
        counts = dict.fromkeys((pod_set.name for pod_set in gang.pod_sets), 0)
        for pod in gang.pods:
            if pod.taken and pod.uid not in lost and pod.slot is not None:
                counts[pod.slot.pod_set] += 1
        if not gang.viable(counts):
            return True
    return False
