"""Admission of objects in files, without a webhook server.

`muster shape` shows the admitted objects, and `muster simulate` plans the placement of these objects. Objects pass
through the webhook's own routes in this process, so the results are the same as on a server. Start reading at
`admission`. `lookups` finds queues, owners, namespaces and runtimes in the given manifests, and then in a cluster, if
one is given. `manifests` reads and writes YAML like kubectl, and `submission` computes the objects that would exist in
a cluster after the submission of manifests.

The package changes no objects and needs no cluster. The server (`webhook.main`, `webhook.app`) must not import this
package, and this package must not import the controller.
"""
