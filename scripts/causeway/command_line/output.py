"""What the commands say: answers on standard output, remarks on standard error; who reads them changes no exit code."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO


@contextlib.contextmanager
def answering() -> Iterator[TextIO]:
    """Give standard output, and write all of it at the end of the block, so that a fault can still be said.

    A reader that goes away, for example `head`, is written to no more; the work goes on, and its exit code stays.

    Raises
    ------
    OSError
        If the output cannot be written for another reason, such as a full disk.
    """
    if sys.stdout is None:  # closed by a shell's `>&-`
        with open(os.devnull, "w") as nowhere:
            yield nowhere
        return
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
    except OSError:
        _silence(sys.stdout)
        raise


def answer(*lines: str) -> None:
    """Print lines of an answer; errors as of `answering`."""
    with answering() as stream:
        stream.writelines(f"{line}\n" for line in lines)


def remark(text: str, stream: TextIO | None = None) -> None:
    """Write a remark on the way, such as progress: where it cannot be written, the work goes on all the same.

    Parameters
    ----------
    text : str
        With its line ends.
    stream : text stream, optional
        Standard error if None.
    """
    stream = stream or sys.stderr
    if stream is None:  # closed by a shell's `2>&-`
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """Send what a stream still keeps, and all that follows, nowhere: Python writes it once more when it ends, and a
    second failure there would be the exit code.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
