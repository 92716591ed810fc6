"""The admission policies of the chart, each with its binding: what RBAC cannot say."""

from typing import Any

from musterctl.chart.files import POLICIES, document


def objects() -> list[dict[str, Any]]:
    """The ValidatingAdmissionPolicies and their bindings, which deny."""
    policies = [document(path) for path in sorted(POLICIES.glob("*.yaml"))]
    return [each for policy in policies for each in (policy, _binding(policy))]


def _binding(policy: dict[str, Any]) -> dict[str, Any]:
    name = policy["metadata"]["name"]
    return {
        "apiVersion": policy["apiVersion"],
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
