"""What a ProvisioningRequest's conditions mean for its gang."""

import pytest

from extender.planner.scaleup.requests import BACK_OFF_S, MAX_BACK_OFF_S, answer_to, consumption
from muster.api.kubernetes.autoscaling import ProvisioningRequest, ProvisioningRequestSpec, ProvisioningRequestStatus
from muster.api.kubernetes.meta import ObjectMeta, ReportedCondition, format_time
from muster.api.names import SCALE_UP_ATTEMPT

NOW = 1_800_000_000.0
TIMEOUT_S = 100.0
LATE = " was not provisioned within 100 s ({})"


def request(age_s: float = 10.0, attempt: int = 1, **conditions: str) -> ProvisioningRequest:
    """One of this age, whose conditions have changed a second ago."""
    said = [
        ReportedCondition(
            type=kind, status=status, reason="Why", message="so", last_transition_time=format_time(NOW - 1)
        )
        for kind, status in conditions.items()
    ]
    meta = ObjectMeta(
        name="r", creation_timestamp=format_time(NOW - age_s), annotations={SCALE_UP_ATTEMPT: str(attempt)}
    )
    spec = ProvisioningRequestSpec(provisioning_class_name="c")
    return ProvisioningRequest(metadata=meta, spec=spec, status=ProvisioningRequestStatus(conditions=said))


@pytest.mark.parametrize(
    ("asked", "reason", "told", "again_at"),
    [
        (request(), "", " is not accepted yet", None),
        (request(Accepted="True"), "", " is accepted", None),
        (request(Accepted="True", Provisioned="False"), "ProvisioningRefused", " is refused: Why: so", None),
        (request(Accepted="True", Provisioned="True"), "", " is provisioned, and its nodes are not there yet", None),
        (request(Accepted="True", Failed="True"), "ProvisioningFailed", ": Failed: Why: so", NOW + 59),
        (request(Provisioned="True", BookingExpired="True"), "BookingExpired", ": BookingExpired: Why: so", NOW + 59),
        (
            request(Provisioned="True", CapacityRevoked="True"),
            "CapacityRevoked",
            ": CapacityRevoked: Why: so",
            NOW + 59,
        ),
        (request(Failed="False"), "", " is not accepted yet", None),
        (request(TIMEOUT_S - 1), "", " is not accepted yet", None),
        (request(TIMEOUT_S), "ProvisioningTimedOut", LATE.format("no autoscaler has taken it up"), NOW + 60),
        (
            request(TIMEOUT_S + 7, Provisioned="False"),
            "ProvisioningTimedOut",
            LATE.format("Provisioned is False: Why: so"),
            NOW + 53,
        ),
        (request(TIMEOUT_S, Provisioned="True"), "", " is provisioned, and its nodes are not there yet", None),
    ],
)
def test_an_answer_is_read(asked: ProvisioningRequest, reason: str, told: str, again_at: float | None) -> None:
    """What has ended a request comes before what was said earlier; who is provisioned does not time out."""
    answer = answer_to(asked, timeout_s=TIMEOUT_S, now=NOW)
    assert (answer.reason, str(answer.words), answer.again_at) == (reason, f"ProvisioningRequest r{told}", again_at)


@pytest.mark.parametrize(
    ("attempt", "wait_s"), [(1, BACK_OFF_S), (2, 2 * BACK_OFF_S), (3, 4 * BACK_OFF_S), (99, MAX_BACK_OFF_S)]
)
def test_the_next_attempt_waits_twice_as_long(attempt: int, wait_s: float) -> None:
    """From the end of the last one on."""
    answer = answer_to(request(attempt=attempt, Failed="True"), timeout_s=TIMEOUT_S, now=NOW)
    assert answer.again_at == NOW - 1 + wait_s


def test_a_time_that_nobody_can_read_is_now() -> None:
    """Whoever answers may write anything."""
    failed = request(Failed="True")
    failed.status.conditions[0].last_transition_time = "yesterday"
    assert answer_to(failed, timeout_s=TIMEOUT_S, now=NOW).again_at == NOW + BACK_OFF_S


def test_pods_consume_only_what_is_provisioned() -> None:
    """Both annotations, or none."""
    assert consumption(None) == consumption(request(Accepted="True")) == {}
    assert consumption(request(Provisioned="True")) == {
        "autoscaling.x-k8s.io/consume-provisioning-request": "r",
        "autoscaling.x-k8s.io/provisioning-class-name": "c",
    }
