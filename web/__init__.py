"""The web page: the content of `muster ps`, `queue`, `topo` and `explain` in a browser, limited to each user's rights.

`app` has the table of pages. `caches` follows the cluster, `view` has the part that one caller may see, `callers`
identifies users, and `rights` checks the users' rights. `security` guards requests, and `streams` notifies pages of
changes. `pages/` has a module for each page, `views/` computes the content of each page as data, `templates/` has the
HTML, and `static/` style and scripts. `serving` starts the server: in a cluster as a separate process (`main`), and on
a laptop by `muster web`.

No data of a namespace outside the caller's scope leaves the server, and each page works without scripts. The package
makes no decisions: `gangs` computes the rows of lists, and `extender.explain` the reports. The package must not import
musterctl.
"""
