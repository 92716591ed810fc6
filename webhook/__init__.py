"""The webhook: what is in a pod. It answers AdmissionReviews and writes nothing.

`app` is the list of routes, `answers` what happens around each, `review` the envelope, `mutate` and `validate` hold one
module per kind, `patch` builds JSON patches, `lookup` finds queues and owners, `registration` is what the API server is
told. Every replica can answer every review; none keeps state. Never imports extender or controller.
"""
