"""`python -m history`: the recorder process."""

import sys

from history.main import main

if __name__ == "__main__":
    sys.exit(main())
