"""Access to the Helm chart from Python: reading its files and roles, and running helm.

The folder `charts/muster/files` holds the manifests that the chart's templates and `muster up` share: CRDs, roles,
policies, kube-scheduler's configuration, webhooks. The module `files` reads these manifests, fills in names, and
renders the chart with helm. `roles` assigns rights to accounts, and `generated` produces the chart's files that `make
generate` writes.

Each right is defined in one place: `files/roles/<process>.yaml`. This package may import `muster`, the webhook's
registration, and the locations of programs in musterctl.plane. Only musterctl may import this package.
"""
