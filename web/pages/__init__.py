"""A module for each page: functions that take an `Asked` and return its answer.

They read `asked.view` only, which has nothing that the caller may not see, and must not reach for the caches.
"""
