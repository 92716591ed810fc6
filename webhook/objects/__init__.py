"""Knowledge of objects that mutation and validation share, so that neither has to import the other. No I/O.

`canonical` brings the specs of two Volcano Jobs into one form, to compare what they mean; `names` checks names, and
that the queue or framework that they name can be used; `constraints` checks labels, tolerations and affinities;
`known_keys` finds typing errors in labels and annotations; `documents` reads JSON of unknown shape.

Promises functions of their arguments, queues included. It must not import webhook.mutate or webhook.validate, nor
anything that serves.
"""
