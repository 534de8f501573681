"""The checked configuration and the sheet with its indexes, which all rule files share.

Required: `config` (the configuration as loaded). Sets: EXPORTS (rows of the sheet by dataset and export), TARGETS
(targets by dataset), SERIES (datasets by series), TELEMETRY (files of telemetry by dataset), stopped. Nothing here depends on time or chance: every cluster job parses
these files again.
"""

import functools
import gc
import hashlib
import json
import math
import os
import re
import sys
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from snakemake.exceptions import WorkflowError

BASE = Path(
    workflow.current_basedir.get_path_or_uri(secret_free=True)
).parent.parent  # also where another workflow imports this one
sys.path.insert(0, str(BASE / "scripts"))
# an environment whose snakemake was called by its path, not activated: jobs need its mpiexec and python all the same
if sys.prefix != sys.base_prefix and "VIRTUAL_ENV" not in os.environ:
    os.environ |= {"PATH": os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()])}

from causeway import GROUND
from causeway.core.installation import MEMORY_POOL, PACKAGE, end_without_collection

gc.freeze()  # Python does not look for cycles again in all that Snakemake has imported
end_without_collection()

os.environ |= {name: value for name, value in MEMORY_POOL.items() if name not in os.environ}  # before Arrow is loaded
# Jobs speak one language, whatever the user's: MPI does not start where Turkish makes the capital of i another letter.
os.environ |= {"LC_ALL": "C.UTF-8"}

from causeway.core.errors import CausewayError
from causeway.core.files.file_state import state_of
from causeway.core.files.finished_parts import drop_removed, put_back
from causeway.core.files.machine_errors import check_writable
from causeway.readers.detect import detect
from causeway.readers.measured_kind import kind_of
from causeway.readers.report_kinds import report_kind, tool_for
from causeway.core.sheet import (
    check_bin_features,
    find_file,
    read_sheet,
    row_violation,
    with_reduced,
)
from causeway.core.sheet import read_telemetry_sheet
from causeway.command_line.configuration_check import checked_configuration
from causeway.command_line.exports_without_sheet import exports_matching
from causeway.command_line.gate_files import asks_for_verdict, withdraw_verdict
from causeway.core.vocabulary import UNFINISHED


def stopped(message, why=UNFINISHED):
    """Return the error that stops the workflow before its first step. Where the gate's verdict was asked for, that of
    an earlier run is taken away: none says that it passes; what stands in its place says `why`.
    """
    folder = Path("results", "compare")
    if folder.is_dir() and asks_for_verdict(sys.argv[1:]):
        withdraw_verdict(folder, is_drawn=True, why=why)
    return WorkflowError(message)


def check_results():
    """Stop before the first step where results may not be written."""
    try:
        check_writable(Path("results"))
    except CausewayError as error:
        raise WorkflowError(str(error)) from None


def check_config():
    """Validate the configuration and fill in its defaults."""
    try:
        config.update(checked_configuration(config, BASE / "config" / "schemas"))
    except CausewayError as error:
        raise stopped(str(error)) from None


def row_checker(name):
    """Return a function that validates one row of a sheet; the schema is read once, however many rows there are."""
    schema = yaml.safe_load((BASE / "config" / "schemas" / name).read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)

    def check(row):
        if error := best_match(validator.iter_errors(row)):
            raise CausewayError(row_violation(error))

    return check


def load_sheet():
    """Return the sheet's exports by (dataset, export)."""
    configs = [Path(path).parent for path in workflow.overwrite_configfiles]
    try:
        if config["traces"] is not None:
            exports = exports_matching(config["traces"])
        else:
            sheet = find_file(
                config["datasets"],
                [Path.cwd(), *configs, BASE],
                "the sheet of exports (`datasets` in the configuration)",
            )
            exports = read_sheet(sheet, row_checker("datasets.schema.yaml"), config["simulated"])
        rows = with_reduced(exports, config["filters"])
    except CausewayError as error:
        raise stopped(str(error)) from None
    return {(row.dataset, row.export): row for row in rows}


def telemetry_by_dataset():
    """Return the files of telemetry of each traced dataset of the sheet that has any."""
    if config["telemetry"] is None:
        return {}
    configs = [Path(path).parent for path in workflow.overwrite_configfiles]
    whole = [dataset for dataset in TRACED if dataset not in config["filters"]]
    try:
        sheet = find_file(
            config["telemetry"],
            [Path.cwd(), *configs, BASE],
            "the sheet of telemetry (`telemetry` in the configuration)",
        )
        rows = read_telemetry_sheet(sheet, row_checker("telemetry.schema.yaml"), whole)
    except CausewayError as error:
        raise stopped(str(error)) from None
    found = {dataset: [row for row in rows if row.dataset in ("", dataset)] for dataset in whole}
    return {dataset: mine for dataset, mine in found.items() if mine}


def kind_of_export(row):
    """Return an export's kind, `trace`, `counters` or `table`; an unrecognised file counts as a trace, and its reader
    refuses it.
    """
    converted = report_kind(row.path)
    name = row.format if row.format != "auto" else converted.format if converted else detect(row.path)
    return kind_of(name, None if row.simulated_run else Path(row.path)) if name else "trace"


def targets_by_dataset():
    """Return for each dataset its targets per kind of export, in the configuration's order."""
    keys = {"trace": "traces", "counters": "counters", "table": "tables"}
    targets = {}
    for (dataset, _), row in EXPORTS.items():
        kind = kind_of_export(row)
        targets.setdefault(dataset, {})[kind] = list(config["targets"][keys[kind]])
    return targets


def series_of_runs():
    """Return the traced datasets of each series of the sheet, in its order; a dataset is part of one series at most."""
    named = {}
    for (dataset, _), row in EXPORTS.items():
        if row.series:
            named.setdefault(dataset, row.series)
    return {
        series: [dataset for dataset in TRACED if named.get(dataset) == series]
        for series in dict.fromkeys(name for dataset, name in named.items() if "trace" in TARGETS[dataset])
    }


check_config()
EXPORTS = load_sheet()
TARGETS = targets_by_dataset()
DATASETS = list(TARGETS)
TRACED = [dataset for dataset, kinds in TARGETS.items() if "trace" in kinds]
REPLAYED = [dataset for dataset in TRACED if "kernel_variability" in TARGETS[dataset]["trace"]]
COUNTED = [dataset for dataset, kinds in TARGETS.items() if "counters" in kinds]
SERIES = series_of_runs()
TELEMETRY = telemetry_by_dataset()
MEASURED = sorted(
    {target for kinds in TARGETS.values() for kind in ("counters", "table") for target in kinds.get(kind, [])}
)


def check_features():
    """Check the features of bins against the kinds of exports."""
    try:
        check_bin_features(config["bins"]["features"], any(set(kinds) - {"trace"} for kinds in TARGETS.values()))
    except CausewayError as error:
        raise stopped(f"configuration: {error}") from None


check_features()


def one_of(names):
    """Return a wildcard's pattern that matches the given names alone, and nothing if there are none."""
    return "|".join(re.escape(name) for name in names) or r"(?!)"


wildcard_constraints:
    dataset=one_of(DATASETS),
    export=one_of(sorted({export for _, export in EXPORTS})),
    target=r"[A-Za-z_][A-Za-z0-9_.]*",
    batch=r"[0-9]+",
    run=r"[A-Za-z0-9_-]+",


def binning_options():
    """Return the arguments of `bin_launches` that the configuration sets."""
    bins, ranking = config["bins"], config["ranking"]
    options = {
        "width-us": bins["width_us"],
        "launches-per-bin": bins["launches"],
        "seed": config["seed"],
    }
    options |= {name.replace("_", "-"): bins[name] for name in ("mean", "configuration", "link_window_us")}
    options |= {
        name.replace("_", "-"): ranking[name]
        for name in ("score", "keep_max_rows", "control_ratio", "control_min_rows")
    }
    options |= (
        {"keep-share": ranking["keep_share"]}
        if ranking["keep_count"] is None
        else {"keep-count": ranking["keep_count"]}
    )
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [*arguments, *(["--features", *bins["features"]] if bins["features"] else [])]


def further_bins():
    """Return the names of the tables of bins of further widths, and the arguments of `bin_launches` for them."""
    widths = [width for width in config["bins"]["more_widths_us"] if width != config["bins"]["width_us"]]
    return [f"bins_{round(1000 * width)}ns" for width in widths], (
        ["--more-widths-us", *map(str, widths)] if widths else []
    )


def config_hash():
    """Return a hash of the configuration, which identifies the analysis."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]


def as_parameter(value):
    """Return a value as JSON without `<`: Snakemake's report writes parameters into a script block as they are, and a
    name of the configuration could end that block.
    """
    return json.dumps(value, sort_keys=True).replace("<", "\\u003c")


def overview_settings():
    """Return the settings that the overview's methods section reports."""
    return {key: config[key] for key in ("bins", "ranking", "causes", "seed")}


def command_of_this_run():
    """Return the command that a user gave, as far as results depend on it: for messages that advise one."""
    settings = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in workflow.config_settings.config.items()
    }
    configs = [str(path) for path in workflow.overwrite_configfiles]
    command = ["snakemake", "--snakefile", str(workflow.main_snakefile), "--directory", str(Path.cwd())]
    command += ["--configfile", *configs] if configs else []
    command += ["--config", *(f"{key}={value}" for key, value in settings.items())] if settings else []
    return [*command, "--cores", "all"]
