"""What filter answered last about pods without a gang, so that bind can check what it is asked to do.

kube-scheduler binds a pod only to a node that the last filter call about it let pass. An answer is one bit per node
(5,000 nodes: 625 bytes) and is kept from filter to bind, for some hundreds of pods at a time.
"""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

MOST = 4096
"""Pods whose answer is kept; beyond that the oldest is forgotten, and its bind call is tried again through filter."""


class Answers:
    """UID → columns of the nodes that passed. Kept until the pod is bound or gone."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._passed: OrderedDict[str, NDArray[np.uint8]] = OrderedDict()

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._passed)

    def keep(self, uid: str, columns: NDArray[np.int64]) -> None:
        """Remembers the columns that passed, in place of what was answered before; none: forgets the pod."""
        self._passed.pop(uid, None)
        if not len(columns):
            return
        bits = np.zeros(int(columns.max()) + 1, dtype=np.bool_)
        bits[columns] = True
        self._passed[uid] = np.packbits(bits)
        if len(self._passed) > self._most:
            self._passed.popitem(last=False)

    def passed(self, uid: str, column: int | None) -> bool:
        """Whether the last answer about this pod let the node of this column pass."""
        bits = self._passed.get(uid)
        if bits is None or column is None or column // 8 >= len(bits):
            return False
        return bool(bits[column // 8] >> (7 - column % 8) & 1)

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        self._passed.pop(uid, None)

    def forget_node(self, column: int) -> None:
        """The node is gone; its column may be given to another one, for which nobody has been asked."""
        for bits in self._passed.values():
            if column // 8 < len(bits):
                bits[column // 8] &= ~np.uint8(128 >> column % 8)
