"""Validation of Volcano Jobs: the rules for a Job, and the fields that may change.

Start reading with `job`: its handler combines the errors of `spec` (names, volumes, counts and policies), of `tasks`
(tasks, their templates and dependencies), and of `templates`, which makes dry runs of pods. The package must not import
webhook.mutate.
"""
