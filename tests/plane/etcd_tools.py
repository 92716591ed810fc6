"""etcdctl and etcdutl of the version of a plane's etcd, built once into the user's cache.

`go get -tool go.etcd.io/etcd/etcdctl/v3@VERSION go.etcd.io/etcd/etcdutl/v3@VERSION` in `etcd-tools` renews the recipe.
"""

from pathlib import Path
from typing import Final

from musterctl.plane.binaries import cached
from musterctl.plane.gobuild import Recipe

ETCD_TOOLS: Final = Recipe(
    "etcd-tools",
    Path(__file__).with_name("etcd-tools"),
    {"etcdctl": "go.etcd.io/etcd/etcdctl/v3", "etcdutl": "go.etcd.io/etcd/etcdutl/v3"},
    minutes=2,
)


def folder() -> Path:
    """The folder of both programs."""
    return cached(ETCD_TOOLS)
