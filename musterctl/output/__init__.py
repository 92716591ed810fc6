"""Output of commands: lists of objects (`listing`), and reports of the planner (`report`), in tables (`table`).

Promises that no decision is made here, and that output for programs (JSON, YAML, names) has no colour and no broken
lines. It must not import musterctl.commands.
"""
