"""The start of the controller process: `python -m controller`."""

import sys

from controller.main import main

sys.exit(main())
