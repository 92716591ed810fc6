"""Everything the extender says to kube-scheduler. Constants, as a text that changes re-queues the pod at once."""

NOT_LEADING = "this Muster extender does not lead; trying again"
NOT_SYNCED = "Muster's caches are not filled yet; trying again"
NOT_SEEN = "Muster has not seen this pod or its placement yet; trying again"
BARRIER_TIMEOUT = "not all members of the gang arrived in time; trying again"
PLACEMENT_OVER = "the gang's placement changed; trying again"
WRONG_NODE = "the gang's placement names another node for this pod; trying again"
BIND_FAILED = "the API server did not confirm the binding; trying again"

WAITS_FOR_GANG = "the gang has no placement yet (kubectl describe podgroup says why)"
NOT_PLANNED_HERE = "the gang's placement names another node"
HELD_BY_GANG = "the room is held by gangs that are starting"
