"""`python -m bradawl` is the same program as `bradawl`."""

import sys

if __name__ == "__main__":
    from bradawl.safety.import_path import leave_out_working_directory

    leave_out_working_directory()
    from bradawl.app.cli import main

    sys.exit(main())
