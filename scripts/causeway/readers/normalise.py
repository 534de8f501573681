"""One export to a folder of tables and its `capabilities.json`; a bad export is refused there, with the reason, and
does not fail the rule. What the machine lacks, and an export that changes while it is read, do fail it: nothing is
written then, and the same command reads the export again.
"""

import importlib
import logging
import shutil
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from causeway.core.errors import CausewayError, ExportError
from causeway.core.files.file_state import files_of
from causeway.core.files.machine_errors import MachineError, fail_if_of_the_machine, fault_behind, sentence
from causeway.core.tables import sha256_of, write_json
from causeway.readers.capabilities import describe
from causeway.readers.common.options import Options
from causeway.readers.detect import detect
from causeway.readers.printed_reports import printed_report
from causeway.readers.registry import FORMATS
from causeway.readers.sink.sink import Sink
from causeway.readers.sink.star_writer import write_star
from causeway.readers.step_coverage import note_unrecorded_steps
from causeway.readers.unpacking import plain_file
from causeway.readers.unsupported import other, unknown

LOG = logging.getLogger("causeway")


def normalise(
    path: Path,
    folder: Path,
    *,
    export: str,
    source: str,
    rank: int | None = None,
    position: int = 0,
    form: str = "auto",
    node: str | None = None,
    targets: tuple[str, ...] = ("y",),
    communication: tuple[str, ...] = (),
    failure: ExportError | None = None,
) -> dict:
    """Read one export and write its tables and `capabilities.json`.

    Parameters
    ----------
    path : Path
        The file or folder.
    folder : Path
        Where the tables go. It appears when complete; an older one is replaced.
    export, source, rank, position, form, node
        The row of the sheet: name of its tables' folder, source as written there, rank, position in its dataset,
        format, machine.
    targets : tuple of str
        For tables: columns that may be the target.
    communication : tuple of str
        Parts of names of kernels that the user calls communication.
    failure : ExportError or None
        Why the profiler's tool could not convert the file, which is refused then.

    Returns
    -------
    dict
        The capabilities, as written.

    Raises
    ------
    MachineError
        For a fault of the machine, see `machine_errors`; nothing is written.
    CausewayError
        If the export changed while it was read; nothing is written.
    """
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    began = time.monotonic()
    try:
        before = _state(path, source)
        identity = {"export": export, "source": source, "node": node or None, "format": form}
        sink = Sink(partial, {"source": source}, rank, position, communication)
        document = _read(path, identity | {"sha256": None, "bytes": None}, sink, tuple(targets), failure)
        if _state(path, source) != before:
            raise CausewayError(
                f"{source}: it changed while it was read; expected a file that nothing writes to. Run again once the"
                " profiler, or the copy, has finished."
            )
        document = _encodable(document)
        write_json(document, partial / "capabilities.json", schema="capabilities")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _report(document, time.monotonic() - began)
    return document


def _encodable(value: Any) -> Any:
    """Return a document in which names of files that are no UTF-8, which no document can hold, are escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    return [_encodable(inner) for inner in value] if isinstance(value, list) else value


def _read(path: Path, identity: dict, sink: Sink, targets: tuple[str, ...], failure: ExportError | None) -> dict:
    """Fill the sink's folder with tables; return the capabilities."""
    source = identity["source"]
    folder = sink.folder
    begun = None  # the sink, once the export's format is known
    hashing = ThreadPoolExecutor(1)
    try:
        identity["bytes"] = _size(path, source)
        if failure:
            raise failure
        digest = hashing.submit(sha256_of, path)
        with plain_file(path, folder.with_name(folder.name + ".unpacked"), source) as (plain, cut):
            identity["format"] = word = _format_of(plain, source, identity["format"])
            options = Options(source, _size(plain, source), targets)
            begun = sink
            try:
                error = _run(word, plain, sink, options) or cut
            finally:
                identity["sha256"] = sink.metadata["source_sha256"] = digest.result()
            if cut:
                sink.issues.add("truncated", 1, cut.found)
            other = sink.n_transfers or sink.count_of("samples") or sink.count_of("ranges")
            if not (sink.n_launches or sink.has_counters) and (error or not other):
                raise error or _without_launch(source)
            write_star(sink)
            note_unrecorded_steps(folder, sink.issues)
            return describe(identity, sink, error)
    except MachineError:
        raise
    except ExportError as error:
        fail_if_of_the_machine(error, f"reading {source}")
        return _refused(folder, identity, begun, printed_report(path, source) or error)
    except OSError as error:
        fault = fault_behind(error, path)
        if fault is not None:
            raise MachineError(sentence(fault, f"reading {source}")) from error
        problem = f"it cannot be read ({error.strerror or type(error).__name__})"
        reason = ExportError(source, problem, "a readable file", "Check its permissions.")
        return _refused(folder, identity, begun, reason)
    except (MemoryError, ImportError, SyntaxError):
        raise
    except Exception as error:
        fail_if_of_the_machine(error, f"reading {source}")
        # what no reader foresaw: the line of our code is logged, the message is not, since it may quote the export
        LOG.warning("%s: stopped by %s at %s", source, type(error).__name__, _line_of(error))
        LOG.debug("for developers, never in a run's log", exc_info=True)
        problem = f"it has content that the reader did not foresee ({type(error).__name__} at {_line_of(error)})"
        advice = "Export it again; if that does not help, please report it."
        reason = ExportError(source, problem, "a file as the profiler wrote it", advice)
        return _refused(folder, identity, begun, reason)
    finally:
        hashing.shutdown()
        sink.close()


def _without_launch(source: str) -> ExportError:
    problem = "no kernel launch was found in it"
    return ExportError(source, problem, "at least one launch", "Profile again, with the GPU traced.")


def _state(path: Path, source: str) -> list[tuple]:
    """Return what shows that a file, or any file of a folder, was written to: name, inode, size, and the times of
    change, of which that of the inode cannot be put back.

    Raises
    ------
    CausewayError
        If it is gone.
    """
    try:
        facts = [(str(file), file.stat()) for file in files_of(path)]
    except FileNotFoundError:
        raise CausewayError(
            f"{source}: it is gone; expected the file or folder that the sheet names. Is its disk still there?"
        ) from None
    except OSError as error:  # a name that leads nowhere, or a folder that may not be read, is refused below
        fail_if_of_the_machine(error, f"reading {source}")
        return []
    return [(name, fact.st_ino, fact.st_size, fact.st_mtime_ns, fact.st_ctime_ns) for name, fact in facts]


def _line_of(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _size(path: Path, source: str) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    size = path.stat().st_size
    if size == 0:
        advice = "Export it again; a full disk or a killed job leaves empty files."
        raise ExportError(source, "it has zero bytes", "a profiler's export", advice)
    return size


def _format_of(path: Path, source: str, form: str) -> str:
    """Return the word of the format, as the sheet names it or as the content shows."""
    word = detect(path) if form == "auto" else form
    if word is None:
        raise unknown(path, source)
    if word not in FORMATS:
        problem = f"exports of format {word} cannot be read yet"
        raise ExportError(source, problem, f"one of {', '.join(FORMATS)}", "Convert it to a table (CSV).")
    return word


def _run(word: str, path: Path, sink: Sink, options: Options) -> ExportError | None:
    """Let the first reader whose probe matches read; return the error that ended it early, if any."""
    for name in FORMATS[word].readers:
        reader = importlib.import_module(f"causeway.readers.{name}")
        if reader.probe(path):
            try:
                reader.read(path, sink, options)
            except ExportError as error:
                return error
            return None
    raise other(path, options.source, word)


def _refused(folder: Path, identity: dict, sink: Sink | None, error: ExportError) -> dict:
    """Remove what was begun; return the capabilities of a refused export."""
    for file in folder.iterdir():
        file.unlink()
    return describe(identity, sink, error, refused=True)


def _report(document: dict, seconds: float) -> None:
    size = document["bytes"] or 0
    LOG.info(
        "%s: %s, %s, %s in %.1f s (%.1f MB/s)",
        document["source"],
        document["status"],
        document["format_version"] or document["format"],
        ", ".join(f"{rows:,} {table}" for table, rows in sorted(document["tables"].items())) or "no tables",
        seconds,
        size / 1e6 / max(seconds, 1e-9),
    )
    if document["error"]:
        error = document["error"]
        LOG.warning("%s: %s; expected %s. %s", error["source"], error["found"], error["expected"], error["advice"])
