"""The Helm chart as Python sees it: its files, the roles in them, and helm itself.

`charts/muster/files` holds what the chart's templates and `muster up` share: CRDs, roles, policies, kube-scheduler's
configuration, webhooks. `files` reads manifests and fills in names, `roles` knows whose rights they are, `generated`,
`values` and `page` are what `make generate` writes, `render` has helm make the whole.

Promises that a right stands in one place: `files/roles/<process>.yaml`. May import the kernel, and of musterctl.plane
where programs are and kube-scheduler's configuration; nothing below musterctl may import it.
"""
