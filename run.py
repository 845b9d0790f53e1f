"""Run one experiment, or a sweep: ``python run.py group=rotation approx=nystrom``; see ``python run.py --help``."""

import sys
from pathlib import Path

from runners.app.cli import main

if __name__ == "__main__":
    sys.exit(main(config_dir=Path(__file__).resolve().parent / "conf"))
