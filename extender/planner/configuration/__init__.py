"""Interpretation of scheduler configurations; configuration files of KAI-Scheduler and Volcano need no change.

`known` and `knownplugins` are tables of all names in configurations of KAI-Scheduler and Volcano. `resolve` compares a
configuration with these tables and with the registry of actions and plugins. `build` creates actions and plugins from a
configuration, and keeps actions and plugins with unchanged settings. `tables` prints the known names for the
documentation. `planner.framework.config` defines the fields of the file.

The package does no I/O, reads no clock and never ignores a name silently. The report lists names that have another
meaning in Muster or no effect. An unknown name is an error, and all errors are reported at once. The package must not
import actions or plugins: the caller passes a registry. Start reading at `resolve`.
"""
