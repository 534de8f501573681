"""The page on which a dataset is explored, from the whole run to one launch: its index, its tiles, and the page
around them.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import closing
from html import escape
from pathlib import Path

import numpy as np

from causeway.core.clock import clocks_of
from causeway.core.errors import CausewayError
from causeway.core.feature_registry import cause_words
from causeway.core.files.whole_files import write_whole
from causeway.core.finding_kinds import COUNTED, FINDING_KINDS
from causeway.core.logs import LOG
from causeway.core.names.kernel_words import matrix_product
from causeway.core.tables import read_json, read_table, rows_if_there
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.levels.explorer.path_time import PATH, PathPieces
from causeway.levels.explorer.query import Levels
from causeway.levels.explorer.tiles import (
    BLOCK_ROWS,
    BUILT_IN,
    RecordedDevices,
    devices_of,
    metrics_of,
    tile_cells,
    write_launch_tiles,
    write_level_tiles,
)
from causeway.levels.pyramid.ordered_rows import Means, configurations_of, launches_in
from causeway.levels.windows.window import span_of

ASSETS = Path(__file__).parent / "assets"
SLOW_LAUNCHES = "slow_launches"
PARTS = ("tiles", "lanes", "rows", "launches", "moves")
"""The page's program, `explorer_*.js`: each part uses what those before it define."""


def write_explorer(
    folder: Path,
    folders: Mapping[str, Path],
    clocks: Mapping,
    out: Path,
    findings: Iterable[Mapping],
    most_launches: int,
    pieces: Path | None = None,
    style: str = "",
) -> None:
    """Write the page `index.html` and its tiles.

    Parameters
    ----------
    folder : Path
        Results of the dataset, with `levels/`.
    folders : mapping of str to Path
        Folder of tables of each export.
    clocks : mapping
        `clocks.json`.
    out : Path
        Folder of the page; it is replaced.
    findings : iterable of mapping
        All findings, in their order.
    most_launches : int
        Launches that are on the page one by one.
    pieces : Path, optional
        `path_pieces.parquet` of the dataset; without it, or without rows, the page has no critical path.
    style : str
        Style sheet with the theme that the page shares with others, as CSS custom properties; without it all is black
        on white.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    levels = Levels(folder / "levels")
    traced = {export: folders[export] for export in folders if any(lane["export"] == export for lane in levels.lanes)}
    index = {"dataset": folder.name, "origin": levels.index["origin_ns"], "span": levels.index["span_ns"]}
    if not traced:
        nothing: dict = {name: [] for name in ("levels", "rows", "metrics", "lanes", "launches")}
        index |= nothing | {"total": 0, "configurations": [], "findings": [], "slow": {}}
    else:
        with closing(PathPieces(pieces)) as path:
            configurations, numbers = _configurations(traced)
            recorded = RecordedDevices.of(devices_of(levels), traced, clocks_of(clocks))
            tiles, is_seen = write_level_tiles(levels, out / "tiles", recorded, path)
            metrics = [metric | {"seen": seen} for metric, seen in zip(metrics_of(levels, path), is_seen, strict=True)]
            index |= {
                "low": levels.earliest_ns() - index["origin"],
                "recorded": [(ends - index["origin"]).tolist() for ends in (recorded.begins, recorded.ends)],
                "levels": tiles,
                "total": sum(launches_in(folder) for folder in traced.values()),
                "launches": write_launch_tiles(levels, traced, clocks, numbers, out / "tiles", most_launches),
                "rows": [[lane["lane"], lane["rank"], lane["device"], lane["node"]] for lane in devices_of(levels)],
                "lanes": [[lane["rank"], lane["device"], lane["stream"]] for lane in levels.lanes],
                "metrics": metrics,
                "configurations": configurations,
                "findings": _findings(findings, folder, index["origin"]),
                "slow": _slow_launches(folder / KERNEL_VARIABILITY / "causal", index["origin"]),
            }
    own = BUILT_IN + sum(metric["name"] in PATH for metric in index["metrics"])
    index |= {"tile_cells": tile_cells(len(index["rows"])), "block_rows": BLOCK_ROWS, "own_from": own}
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    write_whole(out / "index.js", f"CW.start({text})\n")
    for name in ("uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE", "explorer.css"):
        write_whole(out / name, (ASSETS / name).read_bytes())
    write_whole(out / "theme.css", style)
    write_whole(out / "explorer.js", program())
    page = (ASSETS / "explorer.html").read_text(encoding="utf-8").replace("{{dataset}}", escape(folder.name))
    write_whole(out / "index.html", page)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    LOG.info(
        "%d tiles of launches, %d levels, %.1f MB in all", len(index["launches"]), len(index["levels"]), size / 1e6
    )


def program() -> str:
    """Return the page's program: its parts inside one function, so that nothing but `CW` is seen from outside."""
    parts = [(ASSETS / f"explorer_{name}.js").read_text(encoding="utf-8") for name in PARTS]
    shown = (
        "loaded: loaded, pending: pending.size, drawn: drawn, path: path, device: device, index: index, amount: amount,"
        " plots: plots"
    )
    seen = (
        f"return {{ start: start, tile: tile, state: function () {{ return {{ view: view, steps: steps, {shown} }};"
        " } };"
    )
    return "\n".join(['"use strict";', "var CW = (function () {", *parts, seen, "})();", ""])


def _configurations(folders: Mapping[str, Path]) -> tuple[list[list], dict[str, np.ndarray]]:
    """Return [kernel, class, shape in words, mean in ns, short name] of each configuration, and each export's
    numbers as the page's.
    """
    means = Means(folders)
    index_of: dict[tuple, int] = {}
    rows: list[list] = []
    numbers = {}
    for export, folder in folders.items():
        keys = configurations_of(folder)
        kernels = read_table(folder / "kernels.parquet", "kernels", ["name", "short_name"]).to_pylist()
        short = {row["name"]: matrix_product(row["name"]) or row["short_name"] for row in kernels}
        numbers[export] = np.zeros(len(keys), np.int64)
        for number, key in enumerate(keys):
            if key is None:
                continue
            if key not in index_of:
                kind, name, shape, label = key
                index_of[key] = len(rows)
                grid, block = (" x ".join(str(part) for part in shape[k : k + 3] if part is not None) for k in (0, 3))
                words = ", ".join(filter(None, [grid and f"grid {grid}", block and f"block {block}", label]))
                rows.append([name, kind, words, int(means.mean[export][number]), short[name]])
            numbers[export][number] = index_of[key]
    return rows, numbers


def _slow_launches(folder: Path, origin: int) -> dict[str, str]:
    """Return in words what the slowest launches of each kernel owe to its causes, by rank, start since the origin and
    duration, ns; nothing where no causes were searched.
    """
    by_launch: dict[str, list[str]] = {}
    scopes = read_json(folder / "scopes.json")["scopes"] if (folder / "scopes.json").exists() else []
    for scope in scopes:
        for row in rows_if_there(folder / scope, SLOW_LAUNCHES):
            if row["start_ns"] is not None:
                words = f"{row['attributed_ns']:+,} ns {cause_words(row['feature'], level=row['value'])}"
                by_launch.setdefault(f"{row['rank']} {row['start_ns'] - origin} {row['duration_ns']}", []).append(words)
    return {launch: "; ".join(words) for launch, words in by_launch.items()}


def _findings(findings: Iterable[Mapping], folder: Path, origin: int) -> list[dict]:
    """Return the dataset's findings that have a window: their headline, their verdict or that they are counted, and
    the window in ns.
    """
    entries = []
    for index, finding in enumerate(findings):
        if finding["dataset"] != folder.name:
            continue
        try:
            begin, end = span_of(f"finding_{index}", folder, origin)
        except CausewayError:
            continue  # about the whole of it, or nothing that has a time
        entry = {
            "headline": finding["headline"],
            "verdict": finding["verdict"] if FINDING_KINDS[finding["kind"]].is_inferred else COUNTED,
            "begin": begin - origin,
            "end": end - origin,
        }
        entries.append(entry | {"name": f"finding_{index}"})
    return entries
