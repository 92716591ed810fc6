"""Pod templates in a workload, by paths."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
"""Names of members, from the outside in; `*` stands for each element of a list."""
Place = tuple[str | int, ...]
"""Names of members and indexes of elements."""

TEMPLATE: Path = ("spec", "template")


def pod_templates(workload: Any, paths: Iterable[Path]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The templates at these paths, with their places. The API server refuses values of another shape."""
    for path in paths:
        yield from _below(workload, path, ())


def _below(node: Any, path: Path, place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    if not path:
        if isinstance(node, Mapping):
            yield place, node
    elif path[0] == "*":
        for index, element in enumerate(node if isinstance(node, list) else ()):
            yield from _below(element, path[1:], (*place, index))
    elif isinstance(node, Mapping) and node.get(path[0]) is not None:
        yield from _below(node[path[0]], path[1:], (*place, path[0]))
