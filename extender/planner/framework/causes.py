"""Why a node does not take a pod: small integer codes for arrays over nodes, and the words for people."""

import numpy as np
from numpy.typing import NDArray

from muster.api.kubernetes.devices import DEVICE_CLASS_RESOURCE

Codes = NDArray[np.int16]
"""A code per node, of shape (nodes,); 0 where the node takes the pod."""
MAX_CAUSES = 30_000
"""Words name claims and labels, so there can be many; the codes are 16 bits wide."""
OTHER_CAUSES = "refused for a reason that is not told apart any more (restart the extender to see it)"
GPU_PARTS = "no GPU with enough room"
"""The words for a node whose GPUs have enough room together, and none of them for the pod."""


class Causes:
    """Codes ↔ words. Code 0 means that the node takes the pod."""

    def __init__(self) -> None:
        self.words: list[str] = ["fits"]
        self._codes: dict[str, int] = {"": 0}

    def code(self, words: str) -> int:
        """The code of these words; new words get a new code."""
        code = self._codes.get(words)
        if code is None:
            if len(self.words) > MAX_CAUSES and words != OTHER_CAUSES:
                return self.code(OTHER_CAUSES)
            code = self._codes[words] = len(self.words)
            self.words.append(words)
        return code


def scarcity(resource: str) -> str:
    """The words for a node that has too little of this resource."""
    if resource.startswith(DEVICE_CLASS_RESOURCE):
        return f"too few devices of class {resource.removeprefix(DEVICE_CLASS_RESOURCE)}"
    return "too many pods" if resource == "pods" else f"too little {resource}"
