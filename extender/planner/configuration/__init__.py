"""What a scheduler configuration means: KAI-Scheduler's and Volcano's files load as they are, and a report says how.

`known` is the table of all names that the two projects know, as data; `resolve` compares a configuration with it and
with what is registered; `build` makes actions and plugins of it, and keeps those that did not change; `page` prints the
table for the documentation. `planner.framework.config` has the shape of the file.

It promises no I/O and no clock, and that nothing is ignored silently: what is meant differently or has no effect is in
the report, what nobody knows is an error, and all errors come at once. It must not import actions or plugins, which
come in as a registry. Start at `resolve`.
"""
