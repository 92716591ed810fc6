"""Admission without a server: objects in files, as the webhook would admit them.

`muster shape` shows them, `muster simulate` plans with them. An object goes through the webhook's own routes, in this
process, so that there is no second opinion: start reading at `admission`. `lookups` finds queues, owners, namespaces
and runtimes among the documents, and in a cluster only if one is given. `consequences` adds the objects that follow
from an admitted one, with the pods that its controller would create.

Promises to change nothing anywhere, and to need no cluster. What serves (`webhook.main`, `webhook.app`) must not import
it, and it must not import the controller.
"""
