"""Content of each page as data: one module per page, made of objects, reports and the caller's scope.

Start at `gangs`, the simplest. What a page shows is a frozen Struct that its template in `templates/` writes out; it
holds text, numbers and links, and no object of the API. `parts` has times, bars and the parts of lists, `places` the
nodes of a gang.

Promises that it is made of its arguments alone (time is one of them), and that it names nothing outside the scope that
it is given. Statements of a report about others are left out here, before any template sees it. It must not import
starlette or jinja2, and does no I/O.
"""
