"""Makes what takes seconds in a large cluster before anybody asks for it."""

from musterctl.web.pages.topology import summed
from musterctl.web.site import Site


def warm(site: Site) -> None:
    """Make the rows of all gangs, the sums of all nodes, and the planner's cycle; the caches must be filled."""
    site.caches.warm()
    summed(site)
    site.explainer.warm()
