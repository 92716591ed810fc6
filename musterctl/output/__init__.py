"""Output of commands: lists of objects (`listing`), and reports of the planner (`report`), in tables (`table`).

This package makes no decisions. Output for programs (JSON, YAML, names) has no colour and no wrapped lines. The package
must not import musterctl.commands.
"""
