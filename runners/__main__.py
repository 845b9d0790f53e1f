"""``python -m runners``: the command ``orbit``, for ``torchrun -m runners`` and where scripts are not on the path."""

import sys

from runners.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
