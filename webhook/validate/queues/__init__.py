"""What must hold for a Queue, alone and among the others.

Start reading at `queue`, the handler: `amounts` compares the amounts of one queue, `tree` those of a queue with the
queues above, beside and below it. Promises that a queue can be edited in every state, and that an update is not refused
for what it leaves as it is, where it changes nothing that is looked at here. It does no I/O of its own, and must not
import webhook.mutate.
"""
