"""The shared kernel of Muster's three processes, and the command line.

Wire types, resources, the API client, the runtime framework and the local plane live here. It knows nothing of webhook,
extender and controller; only the command line and the local plane may import them.
"""
