"""Manifests that commands read, and what would become of them.

Start reading at `documents`: YAML as kubectl reads it; `yamllines` writes it with the path of each line. `submission`
is what a cluster would hold after they were submitted, for
`muster simulate`. Admission itself is the webhook's (`webhook.offline`).

Promises to print nothing and to write to no cluster. It must not import musterctl.commands.
"""
