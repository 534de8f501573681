"""Where a rule's messages go, progress on long steps, and how an entry script fails."""

import contextlib
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.files.machine_errors import fault_behind, in_words
from causeway.core.installation import end_without_collection, keep_pandas_out

LOG = logging.getLogger("causeway")
PROGRESS_EVERY_S = 5.0
"""Shortest time between two reports of progress, in seconds."""


def log_to(path: str | Path | None) -> None:
    """Send this process's messages and warnings to `path`, the rule's log; to standard error if None.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    handler = (
        logging.StreamHandler(sys.stderr) if path is None else logging.FileHandler(path, mode="w", encoding="utf-8")
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)
    end_without_collection()


@contextlib.contextmanager
def failing_clearly(log: str | Path | None) -> Iterator[None]:
    """Run an entry script's work and end the process with one sentence if it fails.

    A `CausewayError` gives its own sentence, and a fault of the machine that of `machine_errors`; of any other error
    the traceback goes to the log only. Snakemake shows the end of the log, so the sentence is its last line.

    Raises
    ------
    SystemExit
        With status 1, for any error in the work.
    """
    log_to(log)
    keep_pandas_out()
    try:
        yield
    except CausewayError as error:
        LOG.error("%s", error)
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(1) from None
    except Exception as error:
        LOG.error("%s", traceback.format_exc())
        if fault_behind(error) is not None:
            LOG.error("%s", in_words(error))
            sys.stderr.write(f"error: {in_words(error)}\n")
            raise SystemExit(1) from None
        LOG.error("%s", in_words(error))
        sys.stderr.write(f"internal error: {type(error).__name__}: {error}. The log has the details: {log}\n")
        raise SystemExit(1) from None


class Progress:
    """Report the progress and the rate of a long step, at most once in five seconds.

    Parameters
    ----------
    what : str
        The step, e.g. "rank0.sqlite: launches".
    total : int or None
        Size of the whole step in `unit`; None where unknown.
    unit : str
        "B" (bytes) is reported in MB, anything else as a plain number.
    """

    def __init__(self, what: str, total: int | None, unit: str = "B") -> None:
        self.what = what
        self.total = total
        self.unit = unit
        self.began = self.reported = time.monotonic()

    def at(self, done: int) -> None:
        """Note that `done` units are finished in total; report it if the last report is five seconds old."""
        now = time.monotonic()
        if now - self.reported < PROGRESS_EVERY_S:
            return
        self.reported = now
        scale, unit = (1e6, "MB") if self.unit == "B" else (1, self.unit)
        whole = f" of {self.total / scale:,.0f}" if self.total else ""
        share = f" ({100 * done / self.total:.0f} %)" if self.total else ""
        rate = done / scale / (now - self.began)
        LOG.info("%s: %s%s %s%s, %s %s/s", self.what, f"{done / scale:,.0f}", whole, unit, share, f"{rate:,.1f}", unit)
