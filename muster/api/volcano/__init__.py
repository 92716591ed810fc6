"""Volcano's objects: Job and Command (`batch`), PodGroup and Queue (`scheduling`), HyperNode (`topology`).

Imports only `muster.api.kubernetes` and the modules of `muster.api` itself.
"""
