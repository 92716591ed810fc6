"""`python -m musterctl`: the command line, where no script of it is on the path."""

from musterctl.app import main

if __name__ == "__main__":
    main()
