"""The cluster as the planner knows it, kept by events: nodes as arrays, pods by class, gangs by pod set.

Start at `state`, which is told of every object. Nothing here blocks, reads a clock or talks to an API server.
"""
