"""Functions that mutation and validation share, so that neither package has to import the other. No I/O.

`canonical` converts specs of Volcano Jobs into a canonical form, so that their meaning can be compared. `names` checks
names, named queues and frameworks, and the keys of labels and annotations. `constraints` checks labels, tolerations and
affinities.

All functions depend only on their arguments, including the queues. The package must not import webhook.mutate,
webhook.validate, or any module of the server.
"""
