"""What the three processes share: structured logs, health and metrics, and how an app is served.

Promises that nothing here knows what a process does: it gets a Flask app and callbacks. It must not import the
processes themselves, certs or the command line.
"""
