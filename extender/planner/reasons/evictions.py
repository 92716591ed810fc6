"""Why a pod has to go: in Events at the pod and its PodGroup, and in the placement of the gang it goes for."""

EVICTED = "Evicted"
"""Reason of a condition."""

STRAY = "it is pinned by a placement that is over"
preempted = "preempted by gang {gang} of priority {priority} in queue {queue}".format
reclaimed = "reclaimed by queue {queue} for gang {gang}".format
moved = "moved to make room for gang {gang}".format
incomplete = "the gang has {taken} of the {needed} members it needs and was not completed in time".format
