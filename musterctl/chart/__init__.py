"""Access to the Helm chart from Python: its files, its roles, and the program helm.

`charts/muster/files` holds the manifests that the chart's templates and `muster up` share: CRDs, roles, policies,
kube-scheduler's configuration, webhooks. `files` reads them, fills in names, and renders the chart with helm. `roles`
assigns rights to accounts. `generated` produces the files that `make generate` writes.

Each right is defined in one place: `files/roles/<process>.yaml`. This package may import `muster`, the webhook's
registration, and the locations of programs in musterctl.plane; nothing below musterctl may import it.
"""
