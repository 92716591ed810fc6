"""Content of each page as data: one module per page, computed from objects, reports and the caller's scope.

Start reading at `gangs`, the simplest module. The content of a page is a frozen Struct, which its template in
`templates/` renders. Each Struct contains text, numbers and links, but no API objects. `parts` has elements that
several pages use, such as times and bars. `places` lists the nodes of a gang's members.

The content depends only on the functions' arguments, which include the time, and contains no names outside the given
scope. This package removes a report's statements about other tenants before a template gets the report. The package
must not import starlette or jinja2, and does no I/O.
"""
