"""The record of a run: the checksum of each result, compared with what was recorded before."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.core.files.checksums import record_checksums
from causeway.core.logs import failing_clearly


def main(record: str, times: str, log: str) -> None:
    with failing_clearly(log):
        record_checksums(Path(record), Path(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
