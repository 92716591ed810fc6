"""What must hold for a Volcano Job, and what may change in one.

Start reading at `job`, the handler, which puts the parts together: `spec` has the fields beside the tasks, `tasks` the
tasks and how they depend on each other, `policies` the policies of both, and `templates` asks the API server about the
pods. Promises that each part gathers all of its errors. It must not import webhook.mutate.
"""
