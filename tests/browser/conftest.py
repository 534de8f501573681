"""The browser tests draw the same sample results as the tests of plotting."""

import sys
from pathlib import Path

for folder in ("plotting", "scaling"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / folder))
