"""Admission without a server: what the webhook would make of objects that somebody has in files.

`muster shape` shows it, `muster simulate` plans on it. An object goes through the webhook's own routes, in this
process, so that there is no second opinion: start reading at `admission`. `lookups` finds queues, owners, namespaces
and runtimes among the documents, and in a cluster only if one is given. `consequences` goes on to what follows from an
admitted object, with the pods that its controller would create.

Promises to change nothing anywhere, and to need no cluster. What serves (`webhook.main`, `webhook.app`) must not import
it, and it must not import the controller.
"""
