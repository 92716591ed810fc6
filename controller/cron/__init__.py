"""The life of Volcano's CronJobs: a Job at each time of the schedule, and Jobs of the past that are kept.

`rules` decides, `controller` reads and writes. A Job is named after its time, so that it is made at most once
to this process. It must not import the controller of Jobs. Start with `controller.CronJobs.process`.
"""
