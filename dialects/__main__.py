"""`python -m dialects` is the `dialects` command."""

import sys

from dialects.cli import main

if __name__ == "__main__":
    sys.exit(main())
