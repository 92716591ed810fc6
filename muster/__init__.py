"""The shared kernel of Muster's three processes, and the command line.

Wire types, resources, the API client, the model of a Volcano Job and the runtime framework live here. It knows nothing
of webhook, extender and controller, nor of the command line.
"""
