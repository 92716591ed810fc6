"""Knowledge of objects that mutation and validation share, so that neither has to import the other. No I/O.

`canonical` brings the specs of two Volcano Jobs into one form, to compare what they mean. `names` checks names, that
the queue or framework that they name can be used, and keys of labels and annotations. `constraints` checks labels,
tolerations and affinities.

Promises functions of their arguments, queues included. It must not import webhook.mutate or webhook.validate, nor
anything that serves.
"""
