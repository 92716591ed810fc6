"""Volcano's objects: Job (`batch`), Command (`bus`), PodGroup and Queue (`scheduling`), HyperNode (`topology`).

`hypernodes` checks a HyperNode alone, `compat` reads the quirks of Volcano that a Job asks for. Imports only
`muster.api.kubernetes` and the modules of `muster.api` itself.
"""
