"""The webhook: an HTTPS server that answers AdmissionReviews.

The webhook decides what is added to pods, and writes no objects itself. Start reading at `app`, which lists the handler
of each kind of object. `mutate` and `validate` contain the handlers, one module per kind, and `objects` contains shared
code. `app` reads the request and writes the response around a handler. `review` decodes and encodes AdmissionReviews,
and tracks the remaining time. `senders` identifies the sender of a review and limits the look-ups for each sender.
`patch` builds JSON patches. `lookup` defines the look-ups of queues, owners, namespaces and runtimes, and `caches`
implements the look-ups for a cluster. `apiserver` makes dry runs of pods and checks rights. `config` reads the resource
groups. `registration` builds the webhook configurations, which determine the reviews that the API server sends;
`conditions` has their CEL conditions. `offline` admits objects without a server, and `main` runs the process.

Every replica can answer every review, and keeps no state except caches. If a handler fails, the object is refused. The
package must not import extender, controller or musterctl.
"""
