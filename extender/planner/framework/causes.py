"""Why nodes do not take a pod, as small integer codes for arrays over nodes; `reasons.cause` has the words."""

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons

Codes = NDArray[np.int16]
"""A code per node, of shape (nodes,); 0 where the node takes the pod."""
MAX_CAUSES = 30_000
"""Words name claims and labels, so there can be many; the codes are 16 bits wide."""


class Causes:
    """Codes ↔ words. Code 0 means that the node takes the pod."""

    def __init__(self) -> None:
        self.words: list[str] = ["fits"]
        self._codes: dict[str, int] = {"": 0}

    def code(self, words: str) -> int:
        """The code of these words; new words get a new code."""
        code = self._codes.get(words)
        if code is None:
            if len(self.words) > MAX_CAUSES and words != reasons.cause.OTHER:
                return self.code(reasons.cause.OTHER)
            code = self._codes[words] = len(self.words)
            self.words.append(words)
        return code
