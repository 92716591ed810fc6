"""JobFlows, with the creation of their Jobs and their status; and the lists of Jobs in JobTemplates.

`rules` decides which Jobs are due, builds a Job from its JobTemplate, and computes the status. `controller` reads and
writes.

A completed Job is not created again after its deletion, and a pass over an up-to-date JobFlow writes nothing. The
package communicates with the controller of Jobs only through the API, and must not import it. Readers of the code start
with `controller.JobFlows.process`.
"""
