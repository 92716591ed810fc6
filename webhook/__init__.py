"""The webhook: a server that answers AdmissionReviews, decides the content of pods, and writes nothing.

Readers of the code start with `app`, which lists the handler of each kind of object. `mutate` and `validate` contain
the handlers, one module per kind, and `objects` contains shared code. Around a handler, `app` reads the request and
writes the response, and `review` handles the envelope and the remaining time. `senders` identifies the sender and
limits its look-ups. `patch` builds JSON patches. `lookup` defines the look-ups of queues, owners, namespaces and
runtimes, `caches` implements them for a cluster, and `apiserver` makes dry runs of pods and checks rights. `config`
reads the resource groups. `registration` builds the webhook configurations, which determine the reviews that the API
server sends, with CEL conditions from `conditions`. `offline` admits objects without a server, and `main` is the
process.

Every replica can answer every review, and keeps no state except caches. If a review fails, the object is refused. The
package must not import extender, controller or musterctl.
"""
