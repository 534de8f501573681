"""How far results move with each number that decides something in the causal search: `python tests/bench/thresholds.py
OUT [--module PART] [--constant PART] [--more]`.

Each constant is halved and doubled in a copy of the sources (one between .5 and 1: its distance from 1), a few drawn
tables are analysed anew, and what is found is scored against the truth. Writes OUT, a JSON document by
`module:constant`, after each constant, and goes on from there; prints a line for each.
`docs/thresholds.md` quotes them.
"""

import argparse
import ast
import compileall
import importlib
import json
import os
import py_compile
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

FEW = [
    ({}, 300),
    ({"autocorrelation": 0.95, "noise_autocorrelation": 0.6}, 303),
    ({"kernels": 4, "paradox": True, "sized": True}, 305),
    ({"causes": 0, "autocorrelation": 0.9, "noise_autocorrelation": 0.9}, 307),
]
MORE = [
    ({}, 301),
    ({}, 302),
    ({"kernels": 4, "paradox": True}, 304),
    ({"feedback": True, "autocorrelation": 0.8}, 306),
]
"""What each table differs in from BASE, and its seed; all seeds were used while the method was developed."""
BASE = {"rows": 600, "columns": 30, "drivers": 12, "causes": 5, "noise": 1.5}
RESAMPLED = ("discovery/stability_selection.py",)
"""Modules whose constants matter only with half-samples; their tables get so many."""
HALF_SAMPLES = 8
NOT_SEARCH = ("effects/", "examination/", "report/", "data/launch_context", "models/")
"""Modules that come after the search, or that only read tables."""
NO_THRESHOLDS = frozenset(
    "ALIVE_LENGTH AT_ONCE CONVERGED JITTER LATE_ROUNDS MIN_LENGTH MOST_WEIGHTED NORMAL_MAD POWER RIDGE ROUNDING"
    " SMALL_RESIDUAL VALUES_AT_ONCE".split()
)
"""Sizes of pieces of work, values of a formula, and bounds of rounding errors."""
LARGE = ("numpy", "pyarrow.parquet", "scipy.cluster.hierarchy", "scipy.signal", "scipy.stats", "sklearn.ensemble")
"""Libraries that are loaded once."""
FOLDERS = ("causal", "numeric/effective_size.py", "numeric/block_resampling.py")


def constants():
    """Return (module, constant, value) of the single numbers of the modules that a search runs."""
    package = ROOT / "scripts" / "causeway"
    paths = sorted([*(package / FOLDERS[0]).rglob("*.py"), *(package / name for name in FOLDERS[1:])])
    found = [one for path in paths for one in numbers_in(path, str(path.relative_to(package)))]
    return [one for one in found if one[1] not in NO_THRESHOLDS and not any(part in one[0] for part in NOT_SEARCH)]


def numbers_in(path, name):
    """Return (module, constant, value) of the single numbers that a module assigns."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue
            if type(value) in (int, float):
                found.append((name, node.targets[0].id, value))
    return found


def variants(value):
    """Return a constant halved and doubled; between .5 and 1 its distance from 1, doubled and halved."""
    if 0.5 < value < 1:
        return max(1 - 2 * (1 - value), 0.0), 1 - (1 - value) / 2
    return (max(1, value // 2), value * 2) if isinstance(value, int) and value > 0 else (value / 2, value * 2)


def analysed(tables, resamples):
    """Analyse the tables with the sources that stand first on the path; return sums of scores."""
    import logging
    import warnings

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    from causeway.causal.data.outcome import Scope
    from causeway.causal.data.scopes import feature_columns, in_time_order, observations_of
    from causeway.causal.discovery.discover import discover
    from lab.scripts.measure_method import claims_of
    from lab.validation.features_file import features_table
    from lab.validation.generator import GeneratorSettings, draw
    from lab.validation.scores import f1, score_claims

    begun = time.process_time()
    sums = {}
    arrows = []
    for other, seed in tables:
        settings = GeneratorSettings(**(BASE | other))
        table = draw(settings, seed)
        features = in_time_order(features_table(table))
        scope = Scope("thresholds", "y", "dataset", seed=seed, resamples=resamples)
        outcome, _ = discover(feature_columns(features), observations_of(features, equal_kernels=True), scope)
        claims = claims_of(outcome)
        rest = None if outcome.unexplained is None else outcome.unexplained.value
        for name, value in score_claims(claims, rest, table).items():
            sums[name] = sums.get(name, 0.0) + value
        arrows.append(sorted((claim.name, claim.sign, round(claim.percent)) for claim in claims))
    return {
        "f1": f1(sums["true"], sums["false"], sums["missed"]),
        "false": sums["false"],
        "leaks": sums["leaks"],
        "share_error": sums["share_error"] / len(tables),
        "signs_wrong": sums["signs_asked"] - sums["signs_right"],
        "arrows": arrows,
        "cpu_s": time.process_time() - begun,
    }


def in_child(sources, tables, resamples):
    """Return what `analysed` finds in a child of this process, whose large libraries are loaded already."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        sys.path[:0] = [str(sources), str(ROOT)]
        try:
            text = json.dumps(analysed(tables, resamples))
        except Exception as error:  # a constant may be out of any sense
            text = json.dumps({"failed": f"{type(error).__name__}: {error}"})
        with os.fdopen(write, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def with_value(source, constant, value):
    """Return the source of a module with another value of a constant."""
    changed, count = re.subn(rf"^{constant} = .*$", f"{constant} = {value!r}", source, flags=re.MULTILINE)
    assert count == 1, constant
    return changed


def change(found, base):
    """Return in words how an analysis differs from the one with the constants as they are."""
    if "failed" in found:
        return found["failed"]
    pairs = list(zip(found["arrows"], base["arrows"], strict=True))
    if all(one == other for one, other in pairs):
        return "nothing"
    names = [[{(name, sign) for name, sign, _ in arrows} for arrows in pair] for pair in pairs]
    moved = sum(one != other for one, other in names)
    further = found["share_error"] - base["share_error"]
    shares = f"error of shares {further:+.3f}" if abs(further) >= 0.0005 else "shares, their error by less than .001"
    if not moved:
        return shares
    words = [f"causes in {moved} of {len(pairs)} tables", f"F1 {found['f1'] - base['f1']:+.2f}"]
    words += [f"{found['false'] - base['false']:+.0f} false"] if found["false"] != base["false"] else []
    return ", ".join([*words, shares])


def as_it_is(resamples):
    """Return the key of the analysis with all constants as they are."""
    return f"as it is, {resamples} half-samples"


def line(key, found, base):
    """Return one line: the constant, and what moves if it is halved, and doubled."""
    low, high = variants(found["value"])
    return f"{key} = {found['value']}: {low:g}: {change(found['low'], base)}; {high:g}: {change(found['high'], base)}"


def main(argv=None):
    """Measure the constants whose module and name match; those that are in OUT already are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--module", default="", help="a part of the names of modules")
    parser.add_argument("--constant", default="", help="a part of the names of constants")
    parser.add_argument("--more", action="store_true", help="twice as many tables, in twice the time")
    options = parser.parse_args(argv)
    tables = [*FEW, *MORE] if options.more else FEW
    document = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in LARGE:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "scripts"
        shutil.copytree(ROOT / "scripts", sources, ignore=shutil.ignore_patterns("__pycache__"))
        sys.dont_write_bytecode = True
        # compiled once, and a module whose text has changed is compiled again
        compileall.compile_dir(sources, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        for resamples in (0, HALF_SAMPLES):
            key = as_it_is(resamples)
            document[key] = document.get(key) or in_child(sources, tables, resamples)
            print(key, {name: value for name, value in document[key].items() if name != "arrows"}, flush=True)
        for name, constant, value in constants():
            key = f"{name}:{constant}"
            if options.module not in name or options.constant not in constant:
                continue
            resamples = HALF_SAMPLES if name.endswith(RESAMPLED) else 0
            if key not in document:
                path = sources / "causeway" / name
                source = path.read_text(encoding="utf-8")
                found = []
                for other in variants(value):
                    path.write_text(with_value(source, constant, other), encoding="utf-8")
                    found.append(in_child(sources, tables, resamples))
                path.write_text(source, encoding="utf-8")
                document[key] = {"value": value, "low": found[0], "high": found[1]}
                options.out.write_text(json.dumps(document))
            print(line(key, document[key], document[as_it_is(resamples)]), flush=True)


if __name__ == "__main__":
    main()
