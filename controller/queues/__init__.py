"""Queues: their state, and what is in them: `rules` decides, `usage` counts, both without I/O; `controller` writes."""
