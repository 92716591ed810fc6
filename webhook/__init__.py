"""The webhook: what is in a pod. It answers AdmissionReviews and writes nothing.

Start reading at `app`, the list of routes: each names the handler of one kind of object. `mutate` and `validate` hold
the handlers, a module per kind, and `objects` what both need. Around a handler, `app` goes from the body of a call to
the body of its answer, `review` knows the envelope and the time that is left. `senders` knows whether the sender is
known and what it may ask for. `patch` builds JSON patches, `lookup` finds queues, owners, namespaces and runtimes, and
`apiserver` tries pods and asks for rights of users. `config` reads the resource groups, `registration` makes the
configuration by which the API server sends reviews, with conditions in CEL from `conditions`. `offline` admits objects
without a server, and `main` is the process.

Promises that every replica can answer every review and keeps no state but caches, and that any failure refuses the
object. It must not import extender, controller or musterctl.
"""
