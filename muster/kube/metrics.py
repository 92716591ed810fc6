"""Counters and histograms of muster.kube. Labels are kinds and verbs, never names of objects."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter(
    "muster_kube_requests_total", "Requests to the API server; code 0: no answer.", ["verb", "resource", "code"]
)
REQUEST_SECONDS = Histogram(
    "muster_kube_request_seconds",
    "Seconds from sending a request to having its answer (watches: to the start of the stream).",
    ["verb", "resource"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
UNDECODABLE = Counter(
    "muster_kube_undecodable_total", "Objects in lists and watches that were left out as unreadable.", ["resource"]
)
RELISTS = Counter("muster_kube_relists_total", "Lists of a reflector after its first.", ["resource"])
RESTARTS = Counter("muster_kube_watch_restarts_total", "Watches of a reflector after its first.", ["resource"])
HANDLER_FAILURES = Counter("muster_kube_handler_failures_total", "Handlers that raised.", ["resource"])
QUEUE_DEPTH = Gauge("muster_kube_queue_depth", "Keys that wait in a work queue.", ["queue"])
LEADING = Gauge("muster_kube_leading", "1 while this process holds the lease.", ["lease"])
EVENTS_DROPPED = Counter("muster_kube_events_dropped_total", "Events that could not be recorded.", ["why"])
