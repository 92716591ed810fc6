"""Manifests that commands read, and the objects that a cluster would make of them.

Start reading at `documents`: YAML as kubectl reads it, and as it is written, with the path of each line. `submission`
has the objects of a cluster after manifests were submitted, for `muster simulate`. Admission itself is the webhook's
(`webhook.offline`).

Promises to print nothing and to write to no cluster. It must not import musterctl.commands.
"""
