"""The webhook: what is in a pod. It answers AdmissionReviews and writes nothing.

Start reading at `app`, the list of routes: each names the handler of one kind of object. `mutate` and `validate` hold
the handlers, a module per kind, and `objects` what both need. Around a handler, `dispatch` goes from the body of a call
to the body of its answer, `review` knows the envelope, `patch` builds JSON patches, `lookup` finds queues, owners,
namespaces and runtimes, `dryrun` tries pods on the API server, `rights` asks it what users may do, and `deadline` says
how long any of that may take. `config` reads the resource groups, `registration` is what the API server is told to
send, `offline` admits objects without a server, and `main` is the process.

Promises that every replica can answer every review and keeps no state but caches, and that whatever goes wrong refuses
the object. It must not import extender, controller or musterctl.
"""
