"""`python -m tests.bench [SUBJECT …]`; `throughput` and `drain` are parts of `compare`, run once."""

import importlib
import sys

SUBJECTS = (
    "planner", "verbs", "memory", "sizing", "startup", "review", "admission", "compare", "writes", "controller",
    "queues", "queuecost", "victims", "topology", "trace", "blast"
)  # fmt: skip


def main() -> None:
    """Run the named subjects, or all, and print a table."""
    print(f"{'what':58} {'median':>10} {'budget':>10} {'ratio':>6}")
    for name in sys.argv[1:] or SUBJECTS:
        for result in importlib.import_module(f"tests.bench.{name}").run():
            print(result)


if __name__ == "__main__":
    main()
