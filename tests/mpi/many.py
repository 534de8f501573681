"""Run the program several times in one MPI session, as starting a rank takes longer than most cases: `many.py
COMMAND_LINES.json`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from variability import bin_launches

if __name__ == "__main__":
    for line in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        bin_launches.main(line)
