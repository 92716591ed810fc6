"""What keeps a gang from being let in, beside queues: quotas of its namespace, and how many gangs were let in."""

EXCEEDED = "QuotaExceeded"
OVERCOMMITTED = "Overcommitted"
"""Reasons of conditions."""

resource_quota = "ResourceQuota {quota} of its namespace leaves too little {resource} for it to start".format
overcommitted = (
    "the gangs that were let in before it need all {resource} that may be promised, {factor:g} times what the nodes "
    "have (overcommit-factor); it is let in when some of them have ended"
).format
