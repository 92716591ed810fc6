"""Job plugins: what a Volcano Job's `spec.plugins` adds to its pods and beside them.

A plugin is pure: it shapes pod manifests and says which objects the Job needs; the controller creates and deletes them.
Plugins run in the registry's fixed order, whatever the order in the Job. Nothing here talks to an API server.
"""
