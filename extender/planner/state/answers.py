"""The last answers to filter calls for pods without a gang; bind calls are checked against these answers.

kube-scheduler binds a pod only to a node that passed the pod's last filter call. An answer has one bit per node (625
bytes for 5,000 nodes), and is stored until the pod is bound. Typically, some hundreds of answers are stored at the same
time.
"""

import numpy as np
from cachetools import FIFOCache
from numpy.typing import NDArray

MOST = 4096
"""Maximum number of stored answers. Beyond this number, the oldest answer is dropped, and the bind verb checks that
answer's pod again."""


class Answers:
    """Maps a pod's UID to the columns of the nodes that passed its last filter call, until the pod is bound or gone."""

    def __init__(self, most: int = MOST) -> None:
        self._passed: FIFOCache[str, NDArray[np.uint8]] = FIFOCache(most)

    def __len__(self) -> int:
        """Return the number of stored answers."""
        return len(self._passed)

    def keep(self, uid: str, columns: NDArray[np.int64]) -> None:
        """Store the columns of nodes that passed as the pod's answer; if no node passed, drop the pod's answer."""
        self._passed.pop(uid, None)
        if len(columns):
            bits = np.zeros(int(columns.max()) + 1, dtype=np.bool_)
            bits[columns] = True
            self._passed[uid] = np.packbits(bits)

    def passed(self, uid: str, column: int | None) -> bool:
        """Return True if the node with this column passed the pod's last filter call."""
        bits = self._passed.get(uid)
        if bits is None or column is None or column // 8 >= len(bits):
            return False
        return bool(bits[column // 8] >> (7 - column % 8) & 1)

    def forget(self, uid: str) -> None:
        """Drop the answer about a pod that is bound or gone."""
        self._passed.pop(uid, None)

    def forget_node(self, column: int) -> None:
        """Clear the column of a removed node in all answers, because another node may get the column."""
        for bits in self._passed.values():
            if column // 8 < len(bits):
                bits[column // 8] &= ~np.uint8(128 >> column % 8)
