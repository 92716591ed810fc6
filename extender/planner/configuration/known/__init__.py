"""All names that Volcano's and KAI-Scheduler's configurations know, as data: what becomes of each in Muster.

`entry` has what is said about one name, `plugins` and `file` have the names. A name that Muster knows and does not have
says why in `without`, which the report tells.
"""
