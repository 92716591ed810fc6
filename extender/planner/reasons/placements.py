"""Progress and end of placements, and evictions: in status, Events, and conditions of the PodGroup."""

PLACED = "the gang has a placement"
ADMITTED = "the gang has been admitted"
ENOUGH = "enough members have a node"

waits_for_victims = "waits for {victims} pods to go".format
bound = "all {members} members are bound".format

too_few_bound = "only {taken} of the {wanted} pods that start together got a node".format
not_arrived = "{pods} members did not arrive before the deadline".format
refused = "kube-scheduler refused {pod} on node {node}".format
node_gone = "node {node} is gone".format
node_refuses = "node {node}: {cause}".format
gated = "{pod} waits for the scheduling gate {gate}, which is not Muster's".format

not_evicted = "{pods} pods that had to go for it were not evicted in time".format
BUDGET = "a PodDisruptionBudget does not let pods go that had to go for it"
VICTIMS_STAY = "pods that had to go for it do not end"
ROOM_TAKEN = "the room that was made for it is taken"


EVICTED = "Evicted"
"""Reason of a condition."""

STRAY = "it is pinned by a placement that is over"
# For owners of the victims, who may not see the gang; the extender's log names it.
preempted = "preempted by a gang of priority {priority} in queue {queue}".format
reclaimed = "reclaimed by queue {queue} for a gang of its own".format
moved = "moved to make room for a gang of queue {queue}".format
incomplete = "the gang has {taken} of the {needed} members it needs and was not completed in time".format
