"""`python -m tinyexplore`: the same as the command `tinyexplore`."""

import sys

from tinyexplore.cli import main

sys.exit(main())
