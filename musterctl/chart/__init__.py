"""The Helm chart as Python sees it: its files, the roles in them, and helm itself.

`charts/muster/files` holds the manifests that the chart's templates and `muster up` share: CRDs, roles, policies,
kube-scheduler's configuration, webhooks. `files` reads them, fills in names, and has helm make the whole; `roles` knows
whose rights they are; `generated` makes those that `make generate` writes.

Promises that a right stands in one place: `files/roles/<process>.yaml`. May import the kernel, the webhook's
registration, and of musterctl.plane the place of programs; nothing below musterctl may import it.
"""
