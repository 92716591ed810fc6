"""What a pod gets beside variables, for each framework under each kind of owner; a second review adds nothing."""

import pytest
from frameworks_world import OWNERS, SECRET, Group, shaped, template

PORTS = {"torch": 29500, "jax": 29500, "xgboost": 29500, "tensorflow": 2222}
FORMS = {
    "torch": ("torch", {}),
    "torch, elastic": ("torch", {"muster.dev/elastic": "2:4"}),
    "torch, python": ("torch", {"muster.dev/torch-env": "python"}),
    "jax": ("jax", {}),
    "xgboost": ("xgboost", {}),
    "tensorflow": ("tensorflow", {}),
    "mpi": ("mpi", SECRET),
    "mpi, Intel": ("mpi", {**SECRET, "muster.dev/mpi-implementation": "Intel"}),
    "mpi, MPICH": ("mpi", {**SECRET, "muster.dev/mpi-implementation": "MPICH"}),
    "plain": ("plain", {}),
}


def groups(form: str) -> list[tuple[str, Group]]:
    """A pod of each owner that can have this form."""
    framework, annotations = FORMS[form]
    whole = framework not in {"tensorflow", "mpi"}  # these need the names of all pods, which a bare pod does not know
    pods = template(framework, annotations, {})
    return [(owner, make(pods)) for owner, make in OWNERS.items() if whole or not owner.startswith("Pod")]


@pytest.mark.parametrize("form", FORMS)
def test_each_owners_pods_meet_at_the_port_and_by_name(form: str) -> None:
    """The port of the framework, if it has one, is open once, and the pod has a name that others know."""
    port = PORTS.get(FORMS[form][0])
    for owner, group in groups(form):
        result = shaped(group)
        assert not result.errors, owner
        (container,) = result.pod["spec"]["containers"]
        found = [each["containerPort"] for each in container.get("ports") or []]
        assert found == ([port] if port else []), owner
        if not owner.startswith("Pod"):
            assert result.pod["spec"].get("subdomain"), owner


@pytest.mark.parametrize("form", FORMS)
def test_a_pod_that_is_reviewed_again_stays_as_it_is(form: str) -> None:
    """Another webhook may have the API server ask again: nothing stands twice, and nothing contradicts."""
    for owner, group in groups(form):
        first = shaped(group)
        again = shaped(Group(first.pod, group.owner))
        assert (again.pod, again.errors) == (first.pod, []), owner


@pytest.mark.parametrize("form", [form for form in FORMS if form.startswith("mpi")])
def test_each_owners_pods_of_mpi_reach_each_other(form: str) -> None:
    """By keys at the place where ssh looks, and every volume that is mounted is there."""
    for owner, group in groups(form):
        spec = shaped(group).pod["spec"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert len(volumes) == len(spec["volumes"]), owner
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            mounted = {mount["name"] for mount in container.get("volumeMounts") or []}
            assert mounted <= volumes.keys(), owner
        keys = [volume for volume in volumes.values() if (volume.get("secret") or {}).get("secretName") == "keys"]
        assert len(keys) == 1, owner
        assert "/root/.ssh" in {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}, owner
