"""`python -m nbutils`."""

import sys

from nbutils.commands import main

if __name__ == "__main__":
    sys.exit(main())
