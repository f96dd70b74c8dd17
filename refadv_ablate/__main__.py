"""`python -m refadv_ablate`."""

import sys

from refadv_ablate.cli import main

sys.exit(main())
