"""Parts of Kubernetes' own objects that stay exactly as written; the CRDs carry the API server's schema of them."""

from typing import Annotated, Any

from msgspec import Meta

JSON = dict[str, Any]

JobTemplate = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "JobTemplateSpec"})]
"""metadata and spec of a batch/v1 Job."""

Env = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "EnvVar"})]
"""One environment variable: `name`, and `value` or `valueFrom`."""

Resources = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "ResourceRequirements"})]
"""requests, limits and claims of a container."""

Volume = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "Volume"})]
VolumeMount = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "VolumeMount"})]
Affinity = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "Affinity"})]
Toleration = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "Toleration"})]
SchedulingGate = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "PodSchedulingGate"})]
SecurityContext = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "SecurityContext"})]
PodSecurityContext = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "PodSecurityContext"})]

IntOrString = Annotated[int | str, Meta(extra_json_schema={"x-muster-schema": "IntOrString"})]
"""A number, or a word that stands for one."""
