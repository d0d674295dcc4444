"""`python -m tinyexplore`: runs the command `tinyexplore`."""

import sys

from tinyexplore.cli import main

sys.exit(main())
