"""The meaning of a scheduler configuration: files of KAI-Scheduler and Volcano load as they are, with a report.

`known` and `knownplugins` are tables of all names in the two projects. `resolve` compares a configuration with them
and with the registry. `build` creates actions and plugins from it, and keeps unchanged ones. `tables` prints the known
names for the documentation. `planner.framework.config` has the shape of the file.

The package uses no I/O and no clock, and ignores no name silently. The report lists names with another meaning or
without effect; an unknown name is an error, and all errors are reported at once. The package must not import actions or
plugins: the caller passes a registry. Start at `resolve`.
"""
