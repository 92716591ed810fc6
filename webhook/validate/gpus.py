"""What templates and pods say about parts of GPUs, wherever they stand."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.api.fields import FieldError
from muster.resources.gpus import share_errors
from muster.runtime.workload import template_of


def check_gpus(template: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Everything that is wrong with what a pod template asks of GPUs; `path` is the template's."""
    spec, _, annotations = template_of(template)
    yield from share_errors(annotations, spec, f"{path}.metadata.annotations", f"{path}.spec")
