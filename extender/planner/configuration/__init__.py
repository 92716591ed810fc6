"""The meaning of a scheduler configuration: files of KAI-Scheduler and Volcano load as they are, with a report.

`known` and `knownplugins` are the tables of all names of the two projects. `resolve` compares a configuration with them
and with the registry. `build` makes actions and plugins of it, and keeps unchanged ones. `tables` prints the known
names for the documentation. `planner.framework.config` has the shape of the file.

It promises no I/O and no clock, and that nothing is ignored silently. Names with another meaning or without effect are
in the report, an unknown name is an error, and all errors come at once. It must not import actions or plugins, which
come in as a registry. Start at `resolve`.
"""
