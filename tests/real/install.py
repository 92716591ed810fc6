"""Builds and makes what the tests on real nodes need, into the user's cache: `make e2e-real`.

Where real nodes cannot be had, nothing is done: the tests are skipped, and say why.
"""

from realnode import rights
from realnode.cluster import prepare


def main() -> None:
    """Makes what is missing."""
    if rights.lacking():
        return
    prepare()


if __name__ == "__main__":
    main()
