"""Volcano's objects: Job and Command (`batch`), PodGroup and Queue (`scheduling`), and others.

JobFlow and JobTemplate are in `flow`, CronJob in `cron`, HyperNode in `topology`.

The package imports only `muster.api.kubernetes` and the modules of `muster.api` itself.
"""
