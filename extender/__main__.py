"""`python -m extender`."""

from extender.main import main

main()
