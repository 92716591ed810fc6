"""The decisions about TrainJobs: pure functions of objects and times.

`steps` decides which objects are created, changed and deleted; `outcome` when and how a TrainJob ends, by its Jobs, a
plugin or its deadline; `status` has its conditions and counts. `children` describes the objects that exist, and the
labels and annotations of new ones. `reports` describes the protocol of the status server. No function does I/O or reads
a clock. Readers of the code start with `steps.decide`.
"""
