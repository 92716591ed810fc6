"""Volcano's objects: Job (`batch`), Command (`bus`), PodGroup and Queue (`scheduling`), HyperNode (`topology`).

`hypernodes` says what is wrong with a HyperNode by itself, `compat` which of Volcano's quirks a Job asks for. Imports
only `muster.api.kubernetes` and the modules of `muster.api` itself.
"""
