"""Messages about the closest domain for a gang that requires one domain, and about problems with HyperNodes.

Messages about problems with HyperNodes also appear in the condition `Valid` of HyperNodes, in the log and in `muster
topo`.
"""

from msgspec import Struct

from muster.api.grammar import many

no_topology = "there is no topology {name!r}; there are {known}".format
no_tier = "no HyperNode has a tier of at most {tier}; there are {known}".format
no_level = "topology {topology!r} has no level {level!r}; its levels are {known}".format
CLUSTER = "the cluster"
"""The outermost level, which contains the whole cluster."""

hyper_node_wrong = "HyperNode {name} is invalid: {message}".format
more_wrong = "{count} more problems with HyperNodes: muster topo {name}".format
several_parents = (
    "HyperNode {name} is a member of {parents}, but may be in only one: it is in none of them until this is resolved"
).format
tier_order = (
    "HyperNode {child} of tier {child_tier} cannot be a member of {parent} of tier {parent_tier}: members are of "
    "lower tiers, so that no HyperNode contains itself; it is left out there"
).format
torn = (
    "the nodes of HyperNode {name} are in several HyperNodes of tier {above} or lower ({parents}): they are in no "
    "domain of tier {tier} and below until that is resolved"
).format
overlap = (
    "nodes that are in other HyperNodes of tier {tier} too: {nodes}. They are in no domain of tier {tier} and below "
    "until that is resolved"
).format
crowded = (
    "nodes that are members of more than {most} HyperNodes (limit {limit!r}): {nodes}. They are in no domain".format
)
tier_name_taken = "tierName {name!r} is also the name of tier {other}; a request for it means tier {other}".format
tier_name_unused = "other HyperNodes call tier {tier} {known!r}, so its tierName {name!r} is ignored".format
too_many_tiers = "the cluster has more than {most} tiers (limit {limit!r}); tiers above {last} are ignored".format
too_many_patterns = (
    "all HyperNodes have more than {most} patterns (limit {limit!r}), and only those of the oldest HyperNodes count"
).format


class Closest(Struct, frozen=True, rename="camel"):
    """The domain that came closest to fulfilling a topology request, for one part of a gang."""

    part: str
    """The name of the pod set or sub-group; empty for the whole gang."""
    topology: str
    level: str
    """The name of the required level, as shown to users."""
    domain: str
    """The domain of the required level that can hold the most pods; empty if the level has no domain."""
    held: int
    """Number of pods for which the domain has capacity."""
    wanted: int
    """Number of pods that must be in one domain."""
    domains: int
    why: str = ""
    """The reason why the request cannot be fulfilled, if the topology or the level does not exist."""

    @property
    def message(self) -> str:
        """The reason why the request is not fulfilled, as a sentence without a full stop."""
        who = f"{self.part}: " if self.part else ""
        if self.why:
            return f"{who}{self.why}"
        need = f"{who}{many(self.wanted, 'pod')} must be in one domain of level {self.level}"
        if not self.domain:
            return f"{need}, but no node is in such a domain"
        if self.held >= self.wanted:
            return f"{need}; {self.domain} has enough room, but nodes or other pods there do not accept all of them"
        among = "the only one there is" if self.domains == 1 else f"the closest of {self.domains}"
        return f"{need}; {self.domain}, {among}, has room for {self.held}: {self.wanted - self.held} short"
