"""Queues: their state, and what is in them. `rules` decides and `usage` counts, both without I/O; `controller` writes."""
