"""Makes what takes seconds in a large cluster before anybody asks for it."""

from web.pages.topology import summed
from web.site import Site


def warm(site: Site) -> None:
    """Make rows of gangs, sums of nodes, the planner's cycle and the forecasts, once the caches are filled."""
    site.caches.warm()
    summed(site)
    site.explainer.warm()
    site.forecasts.told(())
