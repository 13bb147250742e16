"""`python -m bradawl` is the same program as `bradawl`."""

import sys

from bradawl.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
