"""Output of commands: lists of objects (`listing`), and reports of the planner (`report`), in tables (`table`).

The package only formats data; it makes no decisions. Output that programs read (JSON, YAML, names) has no colour and no
wrapped lines. The package must not import musterctl.commands.
"""
