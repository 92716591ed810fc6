"""Volcano's CronJobs: a Job at each scheduled time, and the retention of past Jobs.

`rules` decides, `controller` reads and writes. The name of a Job is derived from its scheduled time, so each Job is
created at most once. The package must not import the controller of Jobs. Readers of the code start with
`controller.CronJobs.process`.
"""
