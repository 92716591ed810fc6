"""The web pages, one module each, with functions that take a `RequestContext` and return the response.

Pages read only `context.view`, which contains only data that the caller may see. Pages must not access the caches.
"""
