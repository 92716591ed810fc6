"""The controllers of JobFlows and JobTemplates. A JobFlow creates Jobs; a JobTemplate's status lists its Jobs.

`rules` decides which Jobs are due, builds a Job from its JobTemplate, and computes the status. `controller` reads and
writes objects.

A completed Job is not created again after its deletion, and a pass over an up-to-date JobFlow writes nothing. The
package communicates with the controller of Jobs only through the API, and must not import it. Start reading at
`controller.JobFlows.process`.
"""
