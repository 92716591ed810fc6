"""What mutation and validation both need to know of objects, so that neither has to import the other. No I/O.

`canonical` brings the specs of two Volcano Jobs into one form, so that they can be compared by what they mean;
`references` says whether the queue or framework that an object names can be used; `names` what a name may look like;
`documents` reads JSON whose shape nobody has checked yet. It must not import webhook.mutate or webhook.validate.
"""
