"""The life of a JobFlow: its Jobs, made one after the other, and its status; and the lists of Jobs in JobTemplates.

`rules` decides which Jobs are due, how a Job is made of its JobTemplate, and what is written.
`controller` reads and writes.

Promises that a Job that was completed is not made again when it is gone, and that a pass over a JobFlow that is as it
should be writes nothing. It must not import the controller of Jobs: it talks to it through the API. Start with
`controller.JobFlows.process`.
"""
