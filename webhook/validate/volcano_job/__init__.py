"""Validation of Volcano Jobs: the rules for a Job, and the fields that may change.

Start reading at `job`, the handler: it puts together `spec` (names, volumes, counts and policies), `tasks` (tasks,
their templates and dependencies), and `templates`, which makes dry runs of pods. Each part collects all of its errors.
The package must not import webhook.mutate.
"""
