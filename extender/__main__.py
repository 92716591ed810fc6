"""`python -m extender`: the extender process, as started by the container image."""

import os
import sys

# Before numpy is imported: OpenBLAS else starts a thread for each CPU, which spins; no large matrix is multiplied here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from extender.main import main

sys.exit(main())
