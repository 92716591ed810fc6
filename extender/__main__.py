"""`python -m extender`: the extender process, as started by the container image."""

import os
import sys

# Set before numpy is imported, so that OpenBLAS does not start a spinning thread for each CPU, although no large matrix
# is multiplied here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from extender.main import main

sys.exit(main())
