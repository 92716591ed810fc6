"""Makes `python -m extender` start the process, as the container image does."""

from extender.main import main

main()
