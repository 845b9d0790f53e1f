"""Run one experiment, or a sweep: ``python run.py group=rotation approx=nystrom``; see ``python run.py --help``."""

import sys

from runners.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
