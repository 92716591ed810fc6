"""Whether a pod exists: drives Volcano Jobs through their life, and gives every gang its PodGroup.

Here live the work queues, the caches and one module per kind of object that the controller looks after. It promises
that, killed at any instruction, it goes on to the same end after a restart: every intent is written to the object
before it is carried out, and every name is deterministic. It must not import the webhook or the extender.
"""
