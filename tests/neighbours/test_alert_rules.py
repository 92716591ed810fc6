"""The chart's alerts as they are shipped, told by promtool from series of hours: what each needs to fire, and when.

`test_alerts.py` makes the same come true in real processes, with shorter waits. Two alerts fire here alone:
MusterBarriersTimeOut needs 45 gangs that do not meet, and MusterControllerFails a defect.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from beside import prometheus

from charts import rendered

pytestmark = [pytest.mark.neighbour, pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing())]
JSON = dict[str, Any]
HEALTHY = {
    'up{service="muster-webhook", endpoint="status", pod="muster-webhook-0"}': "1x300",
    'up{service="muster-webhook", endpoint="status", pod="muster-webhook-1"}': "1x300",
    'muster_shipped_refused{name="Queue/research"}': "0x300",
    'muster_webhook_reviews_total{route="/mutate/pods", outcome="patched"}': "0+60x300",
    'muster_webhook_reviews_total{route="/mutate/pods", outcome="error"}': "0x300",
    'muster_leading{pod="muster-scheduler-0"}': "1x300",
    'muster_leading{pod="muster-scheduler-1"}': "0x300",
    'muster_leading{pod="muster-scheduler-b-0", pool="b"}': "1x300",
    "muster_cycles_failed_total": "0x300",
    'muster_planner_writes_total{what="status", result="ok"}': "0+600x300",
    'muster_planner_writes_total{what="status", result="failed"}': "0+2x300",
    'muster_barrier_total{outcome="released"}': "0+60x300",
    'muster_barrier_total{outcome="timed_out"}': "0+1x300",
    'muster_set_aside{kind="gang"}': "0x300",
    'muster_queue_longest_wait_seconds{queue="research"}': "0+60x50 0x250",
    'muster_queue_resources{queue="research", resource="nvidia.com/gpu", what="deserved"}': "32x300",
    'muster_queue_resources{queue="research", resource="nvidia.com/gpu", what="allocated"}': "16x300",
    "muster_config_current": "1x300",
    'muster_record_failing{pod="muster-scheduler-0"}': "0x300",
    'muster_queue_budget_ratio{queue="paid", resource="cpu", period="day", pod="muster-scheduler-0"}': "0.7x300",
    'muster_queue_budget_ratio{queue="old", resource="cpu", period="day", pod="muster-scheduler-1"}': "1.5x300",
    'muster_queue_budget_known{queue="paid", pod="muster-scheduler-0"}': "1x300",
    'muster_queue_budget_known{queue="old", pod="muster-scheduler-1"}': "0x300",
    'up{service="muster-web", endpoint="history", pod="muster-web-0"}': "1x300",
    'muster_history_durable{pod="muster-web-0"}': "1x300",
    'up{service="muster-web", endpoint="status", pod="muster-web-0"}': "1x300",
    'muster_history_looked_timestamp_seconds{pod="muster-web-0"}': "0+60x300",
    'muster_history_looked_timestamp_seconds{pod="muster-web-1"}': "0x300",
    'muster_kube_leading{lease="muster-controller", pod="muster-controller-0"}': "1x300",
    'muster_controller_reconciles_total{controller="job", result="done"}': "0+60x300",
    'muster_controller_reconciles_total{controller="job", result="defect"}': "0x300",
    'muster_server_certificate_expiry_timestamp_seconds{pod="muster-webhook-0"}': f"{30 * 86400}x300",
    "muster_certificate_problems": "0x300",
}
"""Series of a cluster in which nothing is wrong, a value a minute: a few writes fail, a few barriers time out."""
ENDS_S = 14 * 86400 + 99 * 60
"""The end of a certificate that has two weeks left in the hundredth minute."""
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "MusterWebhookDown": (
        {f'up{{service="muster-webhook", endpoint="status", pod="muster-webhook-{at}"}}': "1x99 0x200" for at in "01"},
        "102m",
    ),
    "MusterReplicaDown": (
        {'up{service="muster-webhook", endpoint="status", pod="muster-webhook-1"}': "1x99 0x200"}, "115m",
    ),
    "MusterShippedRefused": ({'muster_shipped_refused{name="Queue/research"}': "0x99 1x200"}, "105m"),
    "MusterWebhookFails": ({'muster_webhook_reviews_total{route="/mutate/pods", outcome="error"}': "0x99 1+1x200"},
        "107m"),
    "MusterNobodySchedules": ({'muster_leading{pod="muster-scheduler-0"}': "1x99 0x200"}, "102m"),
    "MusterTwoSchedule": ({'muster_leading{pod="muster-scheduler-1"}': "0x99 1x200"}, "102m"),
    "MusterPlanningFails": ({"muster_cycles_failed_total": "0x99 1x200"}, "101m"),
    "MusterWritesFail": ({'muster_planner_writes_total{what="status", result="failed"}': "0x99 0+60x200"}, "115m"),
    "MusterBarriersTimeOut": ({'muster_barrier_total{outcome="timed_out"}': "0x99 0+6x200"}, "130m"),
    "MusterObjectsSetAside": ({'muster_set_aside{kind="gang"}': "0x99 1x200"}, "115m"),
    "MusterQueueStarves": ({'muster_queue_longest_wait_seconds{queue="research"}': "0x39 0+60x250"}, "117m"),
    "MusterConfigurationRefused": ({"muster_config_current": "1x99 0x200"}, "105m"),
    "MusterRecordingFails": ({'muster_record_failing{pod="muster-scheduler-0"}': "0x99 1x200"}, "105m"),
    "MusterBudgetNearlyUsed": (
        {
            'muster_queue_budget_ratio{queue="paid", resource="cpu", period="day", pod="muster-scheduler-0"}':
            "0.7x99 0.85x200"
        },
        "105m",
    ),
    "MusterBudgetUsed": (
        {
            'muster_queue_budget_ratio{queue="paid", resource="cpu", period="day", pod="muster-scheduler-0"}':
            "0.7x99 1.01x200"
        },
        "105m",
    ),
    "MusterBudgetNotKnown": ({'muster_queue_budget_known{queue="paid", pod="muster-scheduler-0"}': "1x99 0x200"},
        "115m"),
    "MusterBudgetForgotten": ({'muster_history_durable{pod="muster-web-0"}': "1x99 0x200"}, "115m"),
    "MusterHistoryDown": ({'up{service="muster-web", endpoint="history", pod="muster-web-0"}': "1x99 0x200"}, "105m"),
    "MusterHistoryNotWritten": ({'muster_history_looked_timestamp_seconds{pod="muster-web-0"}': "0+60x99 5940x200"},
        "108m"),
    "MusterWebDown": ({'up{service="muster-web", endpoint="status", pod="muster-web-0"}': "1x99 0x200"}, "105m"),
    "MusterControllerIdle": (
        {'muster_kube_leading{lease="muster-controller", pod="muster-controller-0"}': "1x99 0x200"}, "102m",
    ),
    "MusterControllerFails": ({'muster_controller_reconciles_total{controller="job", result="defect"}': "0x99 1+1x200"},
        "107m"),
    "MusterCertificateEnds": (
        {'muster_server_certificate_expiry_timestamp_seconds{pod="muster-webhook-0"}': f"{ENDS_S}x300"}, "110m",
    ),
    "MusterCertificatesAreWrong": ({"muster_certificate_problems": "0x99 1x200"}, "115m"),
}  # fmt: skip
"""By alert: series that differ (from the hundredth minute on), and a moment by which it fires."""
METRICS: JSON = {"metrics": {"rules": True}, "web": {"enabled": True}, "history": {"enabled": True}}


@pytest.fixture(scope="module")
def rules() -> JSON:
    """The rules of the chart."""
    return prometheus.rules(rendered(METRICS))


@pytest.fixture
def fired(rules: JSON, tmp_path: Path) -> Callable[[dict[str, str], str], set[str]]:
    """`fired(series, moment)`: the alerts that fire then."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))

    def ask(series: dict[str, str], moment: str) -> set[str]:
        values = [{"series": name, "values": text} for name, text in series.items()]
        names = [rule["alert"] for rule in prometheus.each_rule(rules)]
        asked = [{"expr": _firing(name), "eval_time": moment, "exp_samples": []} for name in names]
        test = {"interval": "1m", "input_series": values, "promql_expr_test": asked}
        file = tmp_path / "test.yaml"
        file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}))
        result = prometheus.promtool("test", "rules", str(file))
        said = result.stdout + result.stderr
        found = {name for name in names if _firing(name) in said.replace("\\", "")}
        assert bool(found) == bool(result.returncode), said
        return found

    return ask


def _firing(name: str) -> str:
    """An expression with a sample if the alert fires; promtool names it where it expects none."""
    return f'ALERTS{{alertname="{name}", alertstate="firing"}}'


def test_nothing_fires_while_all_is_well(fired: Callable[..., set[str]]) -> None:
    """Neither in the beginning nor after hours."""
    for moment in ("20m", "120m", "280m"):
        assert fired(HEALTHY, moment) == set()


def test_every_alert_is_tried(rules: JSON) -> None:
    """Whoever adds one says here when it fires."""
    assert {rule["alert"] for rule in prometheus.each_rule(rules)} == WRONG.keys()


@pytest.mark.parametrize("name", WRONG)
def test_an_alert_fires_when_it_is_time(name: str, fired: Callable[..., set[str]]) -> None:
    """And alone: not before its time, and no other one with it."""
    series, moment = WRONG[name]
    assert fired(HEALTHY | series, "95m") == set()
    assert fired(HEALTHY | series, moment) == {name}
