"""Functions about objects that mutation and validation share, so that neither has to import the other. No I/O.

`canonical` converts specs of Volcano Jobs into a canonical form, to compare their meaning. `names` checks names,
whether the named queue or framework can be used, and keys of labels and annotations. `constraints` checks labels,
tolerations and affinities.

All functions depend only on their arguments, including the queues. The package must not import webhook.mutate,
webhook.validate, or any module of the server.
"""
