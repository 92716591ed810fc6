"""The parts of a file beside `actions` and `tiers`, and the fields of those that have some."""

from extender.planner.configuration.known.entry import KAI, Name

SECTIONS: dict[str, Name] = {
    "configurations": Name(differs="the arguments of actions, see below"),
    "metrics": Name(without="no plugin of Muster reads the load of nodes"),
    "queueDepthPerAction": Name(of=KAI, without="every waiting gang is tried in every cycle"),
    "usageDBConfig": Name(
        of=KAI,
        differs="Muster measures what queues use itself, without a database; only usageParams.halfLifePeriod counts, as"
        " the halfLife of plugin proportion",
    ),
}

METRICS = (
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.username",
    "elasticsearch.password",
    "elasticsearch.hostnameFieldName",
)
"""The fields of `metrics`; a dot stands for a field in a field, too."""

USAGE_DB = (
    "clientType",
    "connectionString",
    "connectionStringEnvVar",
    "usageParams.halfLifePeriod",
    "usageParams.windowSize",
    "usageParams.windowType",
    "usageParams.tumblingWindowCronString",
    "usageParams.fetchInterval",
    "usageParams.stalenessPeriod",
    "usageParams.waitTimeout",
    "usageParams.extraParams*",
)
"""The fields of `usageDBConfig`."""
