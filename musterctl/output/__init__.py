"""Output of commands: lists of objects (`listing`), reports (`report`, `queues`, `topology`), and the table of `demo`.

Promises that no decision is made here, and that output for programs (JSON, YAML, names) has no colour and no broken
lines. It must not import musterctl.commands.
"""
