"""What happened to every gang, and who used what: kept longer than the objects of the API.

One process records what the API has; the page and the command line read. What lives here imports `muster` only, never
the webhook, the extender or the controller: it believes what is in the API, like any other reader.
"""
