"""`python -m musterctl`: the command line, for environments without the script on the PATH."""

from musterctl.app import main

if __name__ == "__main__":
    main()
