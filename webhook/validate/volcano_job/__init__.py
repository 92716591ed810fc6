"""Validation of Volcano Jobs: what must hold for one, and which fields may change.

Start reading at `job`, the handler: it puts together `spec` (names, volumes, counts and policies), `tasks` (tasks,
their templates and dependencies), and `templates`, which tries pods on the API server. Promises that each part gathers
all of its errors. It must not import webhook.mutate.
"""
