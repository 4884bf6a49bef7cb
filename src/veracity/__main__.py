"""`python -m veracity`."""

from .cli import main

if __name__ == "__main__":
    main()
