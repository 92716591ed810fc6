"""What the pods of a workload that asks for a framework would be refused for, as far as its template says."""

from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.fields import Findings, InvalidFieldError
from muster.runtime.framework import Framework
from muster.runtime.settings import from_annotations
from muster.runtime.workload import describe, template_of
from muster.workloads.adapter import Adapter


def check_template(
    template: Mapping[str, Any], path: str, adapter: Adapter, annotations: Mapping[str, str], framework: Framework
) -> Findings:
    """Settings and reserved env. The labelled template stands at `path`; `annotations` are the workload's own."""
    findings = Findings()
    spec, labels, own = template_of(template)
    settings = from_annotations((f"{path}.metadata.annotations", own), ("metadata.annotations", annotations))
    try:
        info = describe(labels[names.FRAMEWORK], adapter, spec, path=f"{path}.spec", settings=settings)
    except InvalidFieldError as error:
        findings.errors.append(error.error)
    else:
        findings.add(framework.validate(info))
    return findings
