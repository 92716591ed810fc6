"""Makes `python -m extender` start the process, as the container image does."""

import gc
import os
import sys

# Before numpy is imported: OpenBLAS else starts a thread for each CPU, which spins; no large matrix is multiplied here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.modules["rich"] = None  # type: ignore[assignment] # else structlog imports it for a terminal: 0.04 s of a start
gc.disable()  # what is imported stays; `extender.settle` has garbage collected again, once the caches are filled

from extender.main import main  # noqa: E402 - it is what is imported

sys.exit(main())
