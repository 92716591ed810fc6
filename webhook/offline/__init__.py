"""Admission without a server, for objects in files.

`muster shape` shows the admitted objects, and `muster simulate` plans with them. Objects pass through the webhook's own
routes in this process, so the results are identical. Readers of the code start with `admission`. `lookups` finds
queues, owners, namespaces and runtimes in the documents, and in a cluster if one is given. `manifests` reads and writes
YAML like kubectl, and `submission` computes the objects of a cluster after manifests are submitted.

The package changes nothing and needs no cluster. The server (`webhook.main`, `webhook.app`) must not import this
package, and this package must not import the controller.
"""
