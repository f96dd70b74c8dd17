"""`python -m refadv_ablate.curate <stage> key=value …`."""

import sys

from refadv_ablate.curate.cli import main

sys.exit(main())
