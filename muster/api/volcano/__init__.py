"""Volcano's objects: Job and Command (`batch`), JobFlow and JobTemplate (`flow`), PodGroup and Queue
(`scheduling`), HyperNode (`topology`).

Imports only `muster.api.kubernetes` and the modules of `muster.api` itself.
"""
