"""Admission without a server: objects in files, as the webhook would admit them.

`muster shape` shows them, `muster simulate` plans with them. An object goes through the webhook's own routes, in this
process, so that there is no second opinion: start reading at `admission`. `lookups` finds queues, owners, namespaces
and runtimes among the documents, and in a cluster only if one is given. `manifests` reads and writes YAML as kubectl
does, and `submission` has the objects of a cluster after manifests were submitted.

Promises to change nothing anywhere, and to need no cluster. What serves (`webhook.main`, `webhook.app`) must not import
it, and it must not import the controller.
"""
