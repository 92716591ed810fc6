"""Numbers in sentences of the documentation are those of the code: the sentence stands on the page with that number."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from certs.authority import BACKDATE
from controller import worker
from controller.gangs import podgroups
from controller.job import writer
from controller.job.rules import timers
from controller.queues.controller import COUNT_EVERY_S
from controller.settings import TRUST_WAIT_S, ControllerSettings
from extender import clusterstatus, placementcontent
from extender.app import MAX_BODY_BYTES
from extender.barrier import LONGEST_S, MEMBER_S
from extender.configfile import INTERVAL_S
from extender.explain.relief import MAX_SINGLES
from extender.planner import timing
from extender.planner.actions import attempts, consolidate, obstacles, progress
from extender.planner.actions.reserve import ends, reservation, searches
from extender.planner.dynamic import cel
from extender.planner.framework import answers
from extender.planner.framework.answers import ReservationRules
from extender.planner.framework.nodelabels import MOST_CELLS
from extender.planner.scaleup import action, podwrites, preferences, requests
from extender.planner.victims import disturb, notices
from extender.planner.victims.capacity import DOMAINS
from extender.settings import ExtenderSettings
from history import entries, hourly
from muster.api.kubernetes.core import DEFAULT_GRACE_S
from muster.api.kubernetes.devices import MOST_PODS
from muster.api.muster.usage import RESOURCES_KEPT
from muster.process import bounds, prefork, serve
from muster.runtime.plugins.simple import TF_PORT
from muster.runtime.plugins.torch import PORT
from muster.volcano.manifests import MAX_VARIABLE_BYTES
from muster.volcano.tasks import DEFAULT_MAX_RETRY
from musterctl.chart.files import DEFAULT_EXTENDER_PORT
from musterctl.chart.generated import schema
from musterctl.plane.binaries import NEWEST, OLDER
from musterctl.plane.state import PlaneOptions
from webhook.main import THREADS
from webhook.review import MAX_BODY_BYTES as REVIEW_BYTES
from webhook.senders import MOST_REMEMBERED

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
DURATIONS = {
    0.5: "half second", 1: "a second", 30: "half a minute", 60: "a minute", 3600: "an hour", 172_800: "two days"
}  # fmt: skip
EXTENDER, CONTROLLER, PLANE, RULES = ExtenderSettings(), ControllerSettings(), PlaneOptions(), ReservationRules()
PARTS = {part: schema()["properties"][part]["properties"] for part in ("webhook", "extender", "controller")}
ASKS = {part: each["resources"]["default"]["requests"] for part, each in PARTS.items()}


def n(number: float) -> str:
    """A number as a page has it, with commas and without a fraction that is zero."""
    return f"{number:,g}"


SENTENCES: Mapping[str, tuple[str, ...]] = {
    "concepts.md": (
        f"placed {COUNTS[int(EXTENDER.growth_delay_s)]} second after the gang starts (`growthDelay`",
        f"the node is avoided for this gang for {DURATIONS[progress.AVOID_S]},",
        f"placement's deadline: {n(timing.DEADLINE_S)} s plus {n(timing.DEADLINE_PER_SLOT_S)} s per slot",
        (
            f"for at most {n(placementcontent.BACK_OFF_S)} s. This limit doubles after each further failure, "
            f"up to {n(timing.MAX_PLACEMENT_DELAY_S / 60)} minutes"
        ),
        (
            f"Once {obstacles.LIMIT} slots are in flight (placed, but not bound), further gangs wait with the reason "
            f"InFlightLimit. A single gang counts as at most {obstacles.GANG_SHARE} slots, a queue as at most "
            f"{obstacles.QUEUE_SHARE}, and a namespace within a queue as at most {obstacles.NAMESPACE_SHARE}. Another "
            f"{obstacles.RESERVE} slots are only for gangs of up to {obstacles.SMALL} slots"
        ),
        f"for {n(EXTENDER.recovery_timeout_s)} s plus {n(progress.BINDING_S)} s per member of the minimum",
        f"does not get enough members again within {DURATIONS[EXTENDER.staleness_grace_s]} |",
    ),
    "why.md": (
        f"for longer than a lease ({n(CONTROLLER.lease_duration_s)} s)",
        f"The command names up to {COUNTS[MAX_SINGLES]} running gangs",
        f"the planner avoids the node for this gang for {DURATIONS[progress.AVOID_S]} |",
    ),
    "preemption.md": (
        f"at most {consolidate.MOST_MOVED} pods for one gang |",
        (
            f"no pod is evicted for the gang for {n(placementcontent.BACK_OFF_S)} seconds, after the next refusal for "
            f"{n(placementcontent.back_off_s(2))} seconds, and so on up to "
            f"{n(timing.MAX_PLACEMENT_DELAY_S / 60)} minutes"
        ),
        f"up to the same maximum, plus {COUNTS[int(notices.LATE_S / 60)]} minute.",
        f"or {n(DEFAULT_GRACE_S)} s, whichever is longer",
        f"was not moved or repaired in the last {n(disturb.MOVE_REST_S / 60)} minutes",
        f"it is repeated only after a relevant change, or in the next period of {n(attempts.RETRY_S)} s",
    ),
    "autoscaling.md": (
        f"default {n(preferences.DEFAULT_TIMEOUT_S / 60)} minutes |",
        f"Each gang requests nodes for at least {n(action.KEPT_S)} s.",
        f"(at most {requests.MAX_POD_SETS})",
        (
            f"another request after {n(requests.BACK_OFF_S)} s, then {n(2 * requests.BACK_OFF_S)} s, and so on, "
            f"up to {n(requests.MAX_REQUEST_DELAY_S / 60)} min |"
        ),
        (
            f"only after it has waited for {n(podwrites.SETTLE_S)} s. The message of a gang is written at most every "
            f"{n(podwrites.SENTENCE_EVERY_S)} s,"
        ),
        f"{n(podwrites.SENTENCES_PER_S)} messages a second ({n(podwrites.ASKS_PER_S)} conditions a second",
        f"({n(podwrites.ANNOTATIONS_PER_S)} pods a second)",
    ),
    "architecture.md": (f"avoids that node for {DURATIONS[progress.AVOID_S]}.",),
    "queues.md": (
        f"(`usage`) once {DURATIONS[clusterstatus.USAGE_EVERY_S]}",
        f"are updated every {COUNTS[int(clusterstatus.SHARES_EVERY_S)]} seconds if they changed",
        f"including {n(RULES.start_s)} s for its start",
        f"(and at least {DURATIONS[ends.LEAST_PATIENCE_S]} longer)",
        f"One gang per queue and {RULES.heads} gangs in total (`heads`)",
        (
            f"{{mode: {RULES.mode}, patience: {n(RULES.patience_s / 60)}m, expiry: {n(RULES.expiry_s / 3600)}h, "
            f"heads: {RULES.heads}}}"
        ),
        (
            f"repeated after at least {n(reservation.SEARCH_INTERVAL_S)} s, and one cycle searches for reservations "
            f"for at most {searches.SEARCHES_A_CYCLE} gangs"
        ),
    ),
    "topology.md": (f"one domain at a time, in at most {COUNTS[DOMAINS]} domains",),
    "dynamic-resources.md": (f"As in the API, at most {MOST_PODS} pods",
        f"({COUNTS[cel.MOST_AMPLIFIERS + 1]} or more loops or bindings, or over {cel.MOST_AMPLIFIED_CHARS} characters",
        f"evaluated for more than {cel.MOST_ANSWERS} different devices"),
    "scheduler-configuration.md": (f"The extender checks the file every {DURATIONS[INTERVAL_S].removeprefix('a ')}.",),
    "operations.md": (
        (
            "| codes of causes | one entry per text of a cause | grown by creators of pods and claims | maximum: "
            f"{n(answers.MAX_CAUSES)};"
        ),
        f"maximum: {n(entries.REMEMBERED)} pods | the oldest entry is dropped |",
        (
            f"maximum: {n(hourly.OF_GANG)} events of a gang, {n(hourly.OF_NAMESPACE)} of a namespace; "
            f"further events are counted for {n(hourly.COUNTED)} gangs"
        ),
        f"maximum: {RESOURCES_KEPT} resources of an existing queue, and its budgets' resources |",
        f"maximum: {n(MOST_REMEMBERED)} entries of each kind |",
        f"maximum: {n(MOST_CELLS * 8 / 2**20)} MiB; keys that no node has take no memory |",
        (
            f"{n(bounds.REQUEST_S)} s from the first to the last byte of a request. A client has {n(bounds.ANSWER_S)} "
            f"s to read the response (over TLS {serve.IDLE_S} s, the idle time of connections)"
        ),
        f"Headers are limited to {bounds.HEADER_BYTES >> 10} KiB in {bounds.HEADER_FIELDS} fields.",
        (
            f"older than {DURATIONS[bounds.AGE_S]} is closed after its next response. If more than "
            f"{bounds.CONNECTIONS:,} connections"
        ),
        f"one of its {COUNTS[THREADS]} threads",
        (
            f"Bodies of reviews are limited to {REVIEW_BYTES // MIB} MiB. "
            f"The webhook reads at most {prefork.LARGE_AT_ONCE} bodies above {prefork.LARGE_BYTES >> 10} KiB at once"
        ),
        f"Bodies of calls to the extender are limited to {MAX_BODY_BYTES // MIB} MiB.",
        (
            f"the chart requests {ASKS['extender']['memory']} for the extender, {ASKS['controller']['memory']} for the "
            f"controller and {ASKS['webhook']['memory']} for each webhook"
        ),
        (
            f"(extender `{ASKS['extender']['cpu']}`, controller `{ASKS['controller']['cpu']}`, webhook "
            f"`{ASKS['webhook']['cpu']}`)"
        ),
    ),
    "quickstart.md": (
        (
            f"a Kubernetes {NEWEST} control plane with {COUNTS[PLANE.nodes]} simulated nodes of {PLANE.cpu} CPUs, "
            f"{PLANE.memory.replace('Gi', ' Gi')} and {PLANE.gpus} GPUs in {COUNTS[PLANE.racks]} racks"
        ),
        f"# {PLANE.nodes} nodes of {PLANE.cpu} CPUs, {PLANE.memory} and {PLANE.gpus} GPUs in {PLANE.racks} racks",
        f"| {PLANE.nodes}, {PLANE.cpu}, {PLANE.memory}, {PLANE.gpus} |",
        f"| `--racks` `--blocks` | {PLANE.racks}, {PLANE.blocks} |",
        f"listens on port {DEFAULT_EXTENDER_PORT} unless",
    ),
    "install.md": (
        f"`muster up --kubernetes {min(OLDER)}` (or any version up to `{max(OLDER)}`)",
        f"within one lease ({n(CONTROLLER.lease_duration_s)} s)",
    ),
    "certificates.md": (
        f"valid from {DURATIONS[BACKDATE.total_seconds()]} before their creation",
        f"in every caBundle for {n(TRUST_WAIT_S)} seconds,",
    ),
    "frameworks.md": (
        f"open container port {PORT}, and TensorFlow opens {TF_PORT},",
        f"in rank order with port {TF_PORT};",
    ),
    "jobs.md": (f"variable of {MAX_VARIABLE_BYTES >> 10} KiB or more",),
    "volcano-differences.md": (
        (
            f"after {n(timers.FIRST_S)} s, then {n(2 * timers.FIRST_S)} s, and so on up to "
            f"{n(timers.MAX_S / 60)} minutes"
        ),
        f"at growing intervals of up to {n(worker._MAX_DELAY_S)} s.",
        f"`maxRetry: 0` counts as {DEFAULT_MAX_RETRY},",
        (
            f"stable for {n(writer.REST_S)} s plus {n(writer.REST_PER_POD_S * 1000)} ms per pod. A new message for the "
            f"same reason is written when it has been stable for {n(writer.MESSAGE_INTERVAL_S)} s."
        ),
        f"at most every {DURATIONS[COUNT_EVERY_S]},",
        f"retries every {COUNTS[int(podgroups.REFUSED_S)]} seconds.",
    ),
    "migrate.md": (
        (
            f"bind calls wait {n(EXTENDER.barrier_timeout_s)} s, and {n(MEMBER_S * 1000)} ms more for each arrived "
            f"member, {n(LONGEST_S)} s at most"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("page", SENTENCES)
def test_sentences_have_the_numbers_of_the_code(page: str) -> None:
    """However the lines of the page are broken."""
    text = re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert [sentence for sentence in SENTENCES[page] if sentence not in text] == []
