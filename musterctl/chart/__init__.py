"""The Helm chart as Python sees it: its files, the roles in them, and helm itself.

`charts/muster/files` holds the manifests that the chart's templates and `muster up` share: CRDs, roles, policies,
kube-scheduler's configuration, webhooks. `files` reads them and fills in names, `roles` knows whose rights they are;
`webhooks`, `values` and `page` are written by `make generate`; `render` has helm make the whole.

Promises that a right stands in one place: `files/roles/<process>.yaml`. May import the kernel, the webhook's
registration, and of musterctl.plane the place of programs; nothing below musterctl may import it.
"""
