"""Everything that talks to an API server: client, reflector, store, work queue, lease, events.

It promises a typed answer or an `APIError` for every call, a time limit on every call, and threads that end when they
are stopped. It knows Kubernetes but nothing of gangs or jobs: it must not import what lies above it.
"""
