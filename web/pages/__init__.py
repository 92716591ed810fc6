"""A module for each page: functions that take a `RequestContext` and return its response.

Pages only read `context.view`, which contains only data that the caller may see, and must not access the caches.
"""
