"""The page: what `muster ps`, `queue`, `topo` and `explain` say, in a browser, for those who may see it.

`app` has the table of its pages. `caches` follows the cluster, `view` is what one caller is shown of it, `callers` and
`rights` say who asks and may see what, `security` guards requests, `streams` notifies pages of changes. `pages/` has a
module for each page, `views/` what each page shows, as data, `templates/` their HTML, `static/` style and scripts.
`serving` starts it: in a cluster as a process of its own (`main`), on a laptop by `muster web`.

Promises that nothing of a namespace outside the caller's scope leaves the server, and that a page works without
scripts. It makes no decisions: its rows come from `gangs`, its reports from `extender.explain`. It must not
import musterctl.
"""
