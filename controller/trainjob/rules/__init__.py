"""The decisions about TrainJobs: pure functions of objects and times.

`steps` decides which objects are created, changed and deleted. `outcome` decides when and how a TrainJob ends: by its
Jobs, a plugin or its deadline. `status` computes the conditions and counts in a TrainJob's status. `children` describes
the objects that exist, and the labels and annotations of new objects. `reports` describes the protocol of the status
server. The functions of this package do no I/O and read no clock. Start reading at `steps.decide`.
"""
