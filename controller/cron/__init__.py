"""Volcano's CronJobs: a Job at each scheduled time, and the retention of past Jobs.

`rules` makes the decisions; `controller` reads and writes objects. The name of a Job is derived from its scheduled
time, so each Job is created at most once. The package must not import the controller of Jobs. Start reading at
`controller.CronJobs.process`.
"""
