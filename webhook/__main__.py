"""`python -m webhook`."""

from webhook.main import main

if __name__ == "__main__":
    main()
