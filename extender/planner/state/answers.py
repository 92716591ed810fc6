"""The last answers of filter about pods without a gang; bind checks its calls against them.

kube-scheduler binds a pod only to a node that passed the pod's last filter call. An answer is one bit per node
(5,000 nodes: 625 bytes) and is kept from filter to bind, for some hundreds of pods at a time.
"""

import numpy as np
from cachetools import FIFOCache
from numpy.typing import NDArray

MOST = 4096
"""The number of answers that are kept. Beyond it the oldest is dropped, and its pod's bind call goes through filter
again."""


class Answers:
    """UID → columns of the nodes that passed. Kept until the pod is bound or gone."""

    def __init__(self, most: int = MOST) -> None:
        self._passed: FIFOCache[str, NDArray[np.uint8]] = FIFOCache(most)

    def __len__(self) -> int:
        """Return the number of answers."""
        return len(self._passed)

    def keep(self, uid: str, columns: NDArray[np.int64]) -> None:
        """Keep the columns that passed, in place of an earlier answer; without any, drop the pod."""
        self._passed.pop(uid, None)
        if len(columns):
            bits = np.zeros(int(columns.max()) + 1, dtype=np.bool_)
            bits[columns] = True
            self._passed[uid] = np.packbits(bits)

    def passed(self, uid: str, column: int | None) -> bool:
        """Return True if the last answer about this pod let the node of this column pass."""
        bits = self._passed.get(uid)
        if bits is None or column is None or column // 8 >= len(bits):
            return False
        return bool(bits[column // 8] >> (7 - column % 8) & 1)

    def forget(self, uid: str) -> None:
        """Drop the answer about a pod that is bound or gone."""
        self._passed.pop(uid, None)

    def forget_node(self, column: int) -> None:
        """Clear the column of a node that is gone: another node may get it."""
        for bits in self._passed.values():
            if column // 8 < len(bits):
                bits[column // 8] &= ~np.uint8(128 >> column % 8)
