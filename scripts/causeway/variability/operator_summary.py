"""GPU time, launches and variability by what the host was doing: operator, outermost operator, module, phase; over MPI
ranks, each of which reads some exports.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, folder_bytes, open_table, read_table, write_table
from causeway.numeric.mpi import Ranks
from causeway.variability.rows.configurations import Configurations

LEVELS = {"operator": "name", "outermost": "outermost", "module": "module", "phase": "phase"}
"""Levels of the summary, and the columns of `operators` that hold their names."""
KERNEL = "kernel"
"""Level with a row per kernel: the operator that launches most of it; `names` is the number of its operators."""
MOST_NAMES = 1000
"""Rows per level; the names of least GPU time are summed up in one more."""
Sums = dict[tuple[int, int], np.ndarray]
"""By name and kernel: launches, GPU time and variability, the two in ns."""


def summarise_operators(
    dataset: str, folders: Sequence[str | Path], path: str | Path, *, ranks: Ranks | None = None
) -> None:
    """Write `operator_summary.parquet`: for each level the names with most GPU time first, ties by name; launches
    whose name is not known are a row without one. Then, for each kernel, the operator that launches most of it. Without
    operators in any export there is no row.

    Every export is read by one rank, and only its sums travel: the results are the same, to the byte, on any number of
    ranks.

    Parameters
    ----------
    dataset : str
    folders : sequence of path
        Folders of tables.
    path : path
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.

    Notes
    -----
    The variability of a launch is `|t - mean|` of its configuration over all ranks, rounded to ns, so that sums do not
    depend on the order of launches.
    """
    ranks = ranks or Ranks()
    found = ranks.of_first(lambda: _with_operators(map(Path, folders)))
    rows = _rows(*found, ranks) if found else []
    with ranks.together():
        if ranks.first:
            schema = SCHEMAS["operator_summary"]
            columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema}
            write_table(pa.table(columns, schema=schema), path, "operator_summary", metadata={"dataset": dataset})


def _with_operators(folders: Iterable[Path]) -> tuple[Configurations, dict[str, Path]] | None:
    """Return the configurations of the exports that have launches, and their folders; None where no export knows
    operators.
    """
    traced = {folder.name: folder for folder in folders if (folder / "launches.parquet").is_file()}
    known = any((folder / "operators.parquet").is_file() for folder in traced.values())
    return (Configurations(traced), traced) if known else None


def _blocks(folder: Path, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield configuration (the dataset's number), duration (ns) and operator (-1 where not known) of the launches of an
    export, one row group after the other; int64.
    """
    with open_table(folder / "launches.parquet", "launches") as file:
        names = ["configuration", "duration_ns", "operator"]
        names = [name for name in names if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, names)
            duration = table["duration_ns"].to_numpy()
            operator = np.full(duration.size, -1, np.int64)
            if "operator" in names:
                operator = table["operator"].cast(pa.int64()).fill_null(-1).to_numpy()
            yield numbers[table["configuration"].to_numpy()].astype(np.int64), duration, operator


def _means(configurations: Configurations, folders: Mapping[str, Path], ranks: Ranks) -> np.ndarray:
    """Return the mean duration of each configuration over all ranks, ns, float; 0 without launches."""
    with ranks.together():
        sums = np.zeros((2, len(configurations)), np.int64)
        for export, folder in folders.items():
            for configuration, duration, _ in _blocks(folder, configurations.numbers(export)):
                np.add.at(sums[0], configuration, 1)
                np.add.at(sums[1], configuration, duration)
    count, total = ranks.total(sums)
    return total / np.maximum(count, 1)


def _rows(configurations: Configurations, folders: Mapping[str, Path], ranks: Ranks) -> list[dict]:
    """Return the rows of the summary on rank 0; none elsewhere."""
    names = list(folders)
    shares = ranks.share_of([folder_bytes(folders[export]) for export in names])
    here = {names[at]: folders[names[at]] for at in shares}
    means = _means(configurations, here, ranks)
    with ranks.together():
        texts, sums = _sums(configurations, here, means)
        text_of = {level: [*texts[level], None] for level in LEVELS}  # the last is that of -1
        named = {
            level: {(text_of[level][name], kernel): values for (name, kernel), values in sums[level].items()}
            for level in LEVELS
        }
    parts = ranks.collect(named)
    if parts is None:
        return []
    texts, sums = _merged(parts)
    ids = [kernel["id"] for kernel in configurations.kernels]
    rows = [row for level in LEVELS for row in _of_level(level, texts[level], sums[level], ids)]
    return rows + _of_kernels(texts["operator"], sums["operator"], ids)


def _merged(parts: Sequence[Mapping[str, Mapping]]) -> tuple[dict[str, list[str]], dict[str, Sums]]:
    """Return the texts of each level, in order, and the sums of all ranks by their numbers; the order of the parts
    plays no role.
    """
    texts = {}
    sums: dict[str, Sums] = {}
    for level in LEVELS:
        whole: dict[tuple[str | None, int], np.ndarray] = {}
        for part in parts:
            for key, values in part[level].items():
                whole[key] = whole[key] + values if key in whole else values
        texts[level] = sorted({text for text, _ in whole if text is not None})
        number = {text: at for at, text in enumerate(texts[level])} | {None: -1}
        numbered = {(number[text], kernel): values for (text, kernel), values in whole.items()}
        sums[level] = {key: numbered[key] for key in sorted(numbered)}
    return texts, sums


def _sums(
    configurations: Configurations, folders: Mapping[str, Path], means: np.ndarray
) -> tuple[dict[str, dict[str, int]], dict[str, Sums]]:
    """Return the texts of each level with their numbers, and the sums of some exports' launches."""
    texts: dict[str, dict[str, int]] = {level: {} for level in LEVELS}
    sums: dict[str, Sums] = {level: defaultdict(lambda: np.zeros(3, np.int64)) for level in LEVELS}
    kernels = len(configurations.kernels)
    for export, folder in folders.items():
        codes = _codes(folder, texts)
        for configuration, duration, operator in _blocks(folder, configurations.numbers(export)):
            kernel = configurations.kernel_of[configuration].astype(np.int64)
            off = np.rint(np.abs(duration - means[configuration])).astype(np.int64)
            pairs, inverse = np.unique((operator + 1) * kernels + kernel, return_inverse=True)
            part = np.zeros((3, pairs.size), np.int64)
            for at, values in enumerate((1, duration, off)):
                np.add.at(part[at], inverse, values)
            for pair, values in zip(pairs.tolist(), part.T, strict=True):
                for level in LEVELS:
                    sums[level][int(codes[level][pair // kernels - 1]), pair % kernels] += values
    return texts, sums


def _codes(folder: Path, texts: Mapping[str, dict[str, int]]) -> dict[str, np.ndarray]:
    """Return for each level the number of each of an export's operators in `texts`, which gets new names; -1 where not
    known. The last element is that of launches without an operator.
    """
    path = folder / "operators.parquet"
    rows = read_table(path, "operators").to_pylist() if path.is_file() else []
    size = max((row["operator"] for row in rows), default=-1) + 2
    codes = {level: np.full(size, -1, np.int64) for level in LEVELS}
    for row in rows:
        for level, column in LEVELS.items():
            if row[column] is not None:
                codes[level][row["operator"]] = texts[level].setdefault(row[column], len(texts[level]))
    return codes


def _of_level(level: str, texts: Sequence[str], sums: Sums, ids: Sequence[str]) -> list[dict]:
    """Return the rows of one level."""
    by_name: dict[int, dict[int, np.ndarray]] = defaultdict(dict)
    for (name, kernel), values in sums.items():
        by_name[name][kernel] = values
    rows = [_row(level, texts[name] if name >= 0 else None, [kernels], ids) for name, kernels in by_name.items()]
    order = sorted(range(len(rows)), key=lambda at: (-rows[at]["gpu_ns"], rows[at]["name"] or ""))
    found = [rows[at] for at in order[:MOST_NAMES]]
    if len(order) > MOST_NAMES:
        parts = list(by_name.values())
        found.append(_row(level, "(others)", [parts[at] for at in order[MOST_NAMES:]], ids))
    return found


def _of_kernels(texts: Sequence[str], sums: Sums, ids: Sequence[str]) -> list[dict]:
    """Return a row per kernel: the operator that launches most of its GPU time, ties by name, and what it launches."""
    of_kernel: dict[int, list[tuple]] = defaultdict(list)
    for (name, kernel), values in sums.items():
        text = texts[name] if name >= 0 else None
        of_kernel[kernel].append((-int(values[1]), text or "", text, values))
    rows = []
    for kernel, operators in of_kernel.items():
        *_, text, values = min(operators, key=lambda one: one[:2])
        rows.append(_row(KERNEL, text, [{kernel: values}], ids) | {"names": len(operators)})
    return sorted(rows, key=lambda row: (-row["gpu_ns"], row["kernel"]))


def _row(level: str, name: str | None, parts: Sequence[Mapping[int, np.ndarray]], ids: Sequence[str]) -> dict:
    """Return the row of one name, or of several together, from their sums by kernel."""
    kernels: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(3, np.int64))
    for part in parts:
        for kernel, values in part.items():
            kernels[kernel] = kernels[kernel] + values
    launches, gpu_ns, variability_ns = np.sum(list(kernels.values()), axis=0).tolist()
    largest = min(kernels, key=lambda kernel: (-int(kernels[kernel][1]), ids[kernel]))
    return {
        "level": level,
        "name": name,
        "names": len(parts),
        "launches": launches,
        "kernels": len(kernels),
        "kernel": ids[largest],
        "gpu_ns": gpu_ns,
        "variability_ns": variability_ns,
    }
