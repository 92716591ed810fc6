"""Interpretation of scheduler configurations: files of KAI-Scheduler and Volcano load unchanged, with a report.

`known` and `knownplugins` are tables of all names in the two projects. `resolve` compares a configuration with them and
with the registry. `build` creates actions and plugins from a configuration, and keeps unchanged ones. `tables` prints
the known names for the documentation. `planner.framework.config` defines the fields of the file.

The package uses no I/O and no clock, and ignores no name silently. The report lists names that have another meaning or
no effect. An unknown name is an error, and all errors are reported at once. The package must not import actions or
plugins: the caller passes a registry. Start reading at `resolve`.
"""
