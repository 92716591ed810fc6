"""Gangs start beside the deepest, largest and most repeated objects that the API server accepts (`hostile_objects`)."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gang_jobs import metric
from hostile_objects import KINDS, HostileObjects, Schemas, as_data, base
from innocents import run_storm
from loop_turns import measured
from tenants import ROLE_BINDINGS, Tenant

from muster.api.base import Resource
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
MIB = 2**20
LIMITS = {"extender": 512 * MIB, "controller": 512 * MIB, "webhook": 256 * MIB}
"""The limits of the chart."""
LATE_S = ("0.001", "0.005", "0.01", "0.1", "1.0", "5.0", "+Inf")


def making(plane: Plane, tenant: Tenant, others: list[str], chance: random.Random) -> HostileObjects:
    """A tenant who may edit his namespace, as Kubernetes' own role says, with Muster's added to it."""
    del others
    admin = plane.client()
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": tenant.namespace}
    admin.create(
        ROLE_BINDINGS, {"metadata": {"name": "admin"}, "roleRef": role, "subjects": [subject]}, tenant.namespace
    )
    return HostileObjects(Schemas(admin), tenant, chance)


def check(plane: Plane) -> None:
    """Every kind is read, and no process is in trouble; prints how late the loops came."""
    for part in ("extender", "controller"):
        assert not plane.trouble(part)
        late = {le: int(metric(plane, part, f'muster_loop_lag_seconds_bucket{{le="{le}"}}')) for le in LATE_S}
        sys.stderr.write(f"{part}, ticks of the loop that came at most so many seconds late: {late}\n")


def run(plane: Plane, folder: Path, seed: int, gangs: int, *, tidy: bool = False) -> None:
    """The storm, and what must hold after it.

    Hundreds of objects of a megabyte are left: to delete them takes an API server minutes, and to list them meanwhile
    more memory than a machine may have.
    """
    run_storm(plane, folder, seed, gangs=gangs, making=making, limits=LIMITS, check=check, tidy=tidy)


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: f"{each.plural}.{each.group}".rstrip("."))
def test_each_kind_has_an_object_to_begin_with(plane: Plane, namespace: str, resource: Resource[Any]) -> None:
    """Else nothing of it would be accepted, whatever is filled."""
    client = plane.client()
    schemas = Schemas(client)
    if schemas.of(resource) is None:
        pytest.skip("another project's kind, which is not installed here")
    client.create(as_data(resource), base(resource, "x"), namespace, dry_run=True)
    assert schemas.places(resource)


def test_a_short_storm(plane: Plane, tmp_path: Path, seed: int) -> None:
    """Twelve gangs at rest, and twelve in each storm."""
    run(plane, tmp_path, seed, gangs=12, tidy=True)


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_long_storm(fresh_plane: Callable[..., Plane], tmp_path: Path, seed: int) -> None:
    """Two hundred gangs each, on a plane of its own."""
    run(fresh_plane(), tmp_path, seed, gangs=200)


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_the_turns_of_the_loops(fresh_plane: Callable[..., Plane], tmp_path: Path, seed: int) -> None:
    """Fifty gangs each; prints how long single callbacks of the loops compute, and which ones take longest."""
    with measured(tmp_path / "turns"):
        run(fresh_plane(), tmp_path, seed, gangs=50)
