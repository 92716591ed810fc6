"""Makes `python -m extender` start the process, as the container image does."""

import sys

from extender.main import main

sys.exit(main())
