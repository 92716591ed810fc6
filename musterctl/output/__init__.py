"""What commands print: lists of objects (`listing`), the live table of `demo`, the reports of `explain` and `simulate`.

Promises that nothing here decides, and that output for programs (JSON, YAML, names) has no colour and no broken lines.
It must not import musterctl.commands.
"""
