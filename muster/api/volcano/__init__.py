"""Volcano's objects: Job and Command (`batch`), PodGroup and Queue (`scheduling`), JobFlow and HyperNode.

JobFlow has its JobTemplate in `flow`, HyperNode is in `topology`.

Imports only `muster.api.kubernetes` and the modules of `muster.api` itself.
"""
