"""Validation of Volcano Jobs: the rules for a Job, and the fields that may change.

Start reading at `job`: its handler combines the errors from the other three modules. `spec` checks names, volumes,
counts and policies; `tasks` checks tasks, their templates and dependencies; `templates` makes dry runs of pods. The
package must not import webhook.mutate.
"""
