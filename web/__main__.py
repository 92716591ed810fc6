"""`python -m web`: the web page's process in a cluster."""

import sys

from web.main import main

if __name__ == "__main__":
    sys.exit(main())
