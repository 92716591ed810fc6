"""What mutation and validation both need to know of objects, so that neither has to import the other. No I/O.

`canonical` brings the specs of two Volcano Jobs into one form, so that they can be compared by what they mean;
`names` says what a name may look like, and whether the queue or framework that it names can be used; `documents` reads
JSON whose shape nobody has checked yet.

Promises functions of what they are given, queues included. It must not import webhook.mutate or webhook.validate, nor
anything that serves.
"""
