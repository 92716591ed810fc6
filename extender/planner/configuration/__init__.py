"""The meaning of a scheduler configuration: files of KAI-Scheduler and Volcano load as they are, and a report says how.

`known` is the table of all names that the two projects know, as data; `resolve` compares a configuration with it and
with what is registered; `build` makes actions and plugins of it, and keeps those that did not change; `tables` prints
the known names for the documentation. `planner.framework.config` has the shape of the file.

It promises no I/O and no clock, and that nothing is ignored silently: what is meant differently or has no effect is in
the report, an unknown name is an error, and all errors come at once. It must not import actions or plugins, which come
in as a registry. Start at `resolve`.
"""
