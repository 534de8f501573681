"""What all the files in this folder share: the checked configuration, the sheet and its indexes, and where things are.

Required: `config` (the configuration as loaded). Sets: EXPORTS (rows of the sheet by dataset and export), TARGETS (targets by dataset).
Nothing here depends on time or chance: every cluster job parses these files again.
"""

import hashlib
import json
import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import validate

BASE = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parent  # also where another workflow imports this one
sys.path.insert(0, str(BASE / "scripts"))
# an environment whose snakemake was called by its path, not activated: jobs need its mpiexec and python all the same
if sys.prefix != sys.base_prefix and "VIRTUAL_ENV" not in os.environ:
    os.environ |= {"PATH": os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()])}

from causeway.errors import CausewayError
from causeway.readers.detect import detect
from causeway.readers.kinds import kind_of
from causeway.sheet import complaint, find_file, read_sheet, with_reduced

GROUND = "codes compiled errors intervals logs moments queries ranks results row_groups schemas slices tables".split()


def check_config():
    """Validate the configuration and fill in its defaults."""
    try:
        validate(config, "../config/schemas/config.schema.yaml")
    except WorkflowError as error:
        raise WorkflowError(f"configuration: {complaint(error)}; config/schemas/config.schema.yaml describes every key") from None


def check_row(row):
    """Validate one row of the sheet."""
    try:
        validate(dict(row), "../config/schemas/datasets.schema.yaml", set_default=False)
    except WorkflowError as error:
        raise CausewayError(complaint(error)) from None


def load_sheet():
    """Return the sheet's exports by (dataset, export)."""
    configs = [Path(path).parent for path in workflow.overwrite_configfiles]
    try:
        sheet = find_file(
            config["datasets"],
            [Path.cwd(), *configs, BASE],
            "the sheet of exports (`datasets` in the configuration)",
        )
        rows = with_reduced(read_sheet(sheet, check_row, config["simulated"]), config["filters"])
    except CausewayError as error:
        raise WorkflowError(str(error)) from None
    return {(row.dataset, row.export): row for row in rows}


def kind_of_export(row):
    """Return what an export measures, `trace`, `counters` or `table`; an unrecognised file counts as a trace and is refused by its reader."""
    name = row.format if row.format != "auto" else detect(row.path)
    return kind_of(name, None if row.run else Path(row.path)) if name else "trace"


def targets_by_dataset():
    """Return for each dataset its targets per kind of export, in the configuration's order."""
    keys = {"trace": "traces", "counters": "counters", "table": "tables"}
    targets = {}
    for (dataset, _), row in EXPORTS.items():
        kind = kind_of_export(row)
        targets.setdefault(dataset, {})[kind] = list(config["targets"][keys[kind]])
    return targets


check_config()
EXPORTS = load_sheet()
TARGETS = targets_by_dataset()
DATASETS = list(TARGETS)
TRACED = [dataset for dataset, kinds in TARGETS.items() if "trace" in kinds]
MEASURED = sorted({target for kinds in TARGETS.values() for kind in ("counters", "table") for target in kinds.get(kind, [])})


def one_of(names):
    """Return a wildcard's pattern that matches the given names alone, and nothing if there are none."""
    return "|".join(re.escape(name) for name in names) or r"(?!)"


wildcard_constraints:
    dataset=one_of(DATASETS),
    export=one_of(sorted({export for _, export in EXPORTS})),
    target=r"[A-Za-z_][A-Za-z0-9_.]*",
    batch=r"[0-9]+",
    run=r"[A-Za-z0-9_-]+",


def exports_of(dataset):
    """Return the rows of a dataset, in the sheet's order."""
    return [row for (name, _), row in EXPORTS.items() if name == dataset]


def export_row(wildcards):
    """Return the sheet's row of a job."""
    return EXPORTS[wildcards.dataset, wildcards.export]


def export_source(wildcards):
    """Return what a job must wait for: the export, or the folder of the simulated run that holds it."""
    row = export_row(wildcards)
    return f"results/simulated/{row.run}" if row.run else str(row.path)


def export_path(wildcards):
    """Return the export itself."""
    row = export_row(wildcards)
    return f"results/simulated/{row.run}/{row.path}" if row.run else str(row.path)


def sheet_value(name):
    """Return a function that gives the sheet's value `name` for a job's export."""

    def value(wildcards):
        return getattr(export_row(wildcards), name)

    return value


def export_names(wildcards):
    """Return the names of a dataset's exports, in the sheet's order."""
    return [row.export for row in exports_of(wildcards.dataset)]


def dataset_folder(wildcards, output):
    """Return the folder of a dataset's results from the path of one of its targets' tables."""
    return str(Path(output[0]).parent.parent)


def nodes(wildcards):
    """Return the node of each export of a dataset."""
    return {row.export: row.node for row in exports_of(wildcards.dataset)}


def table_folders(wildcards):
    """Return the folders of tables of a dataset, in the sheet's order."""
    return [f"results/{wildcards.dataset}/tables/{row.export}" for row in exports_of(wildcards.dataset)]


def targets_of(dataset):
    """Return the targets of a dataset over all kinds of its exports."""
    return list(dict.fromkeys(target for targets in TARGETS[dataset].values() for target in targets))


def each_target(pattern):
    """Return `pattern` filled in for every dataset and each of its targets."""
    return [pattern.format(dataset=dataset, target=target) for dataset in DATASETS for target in targets_of(dataset)]


def each_dataset(pattern):
    """Return `pattern` filled in for every dataset."""
    return [pattern.format(dataset=dataset) for dataset in DATASETS]


def every_table_folder():
    """Return the folders of tables of all exports, in the sheet's order."""
    return [f"results/{dataset}/tables/{export}" for dataset, export in EXPORTS]


def draft_causes(wildcards):
    """Return the drafts of the batches of kernels of a dataset and target."""
    folder = f"results/{wildcards.dataset}/{wildcards.target}/causal/drafts"
    return [f"{folder}/{batch}.json" for batch in range(config["causes"]["batches"])]


def binning_options():
    """Return the arguments of `bin_launches` that the configuration sets."""
    bins, ranking = config["bins"], config["ranking"]
    options = {"width-us": bins["width_us"], "launches-per-bin": bins["launches"], "worker-kind": bins["workers"], "seed": config["seed"]}
    options |= {name.replace("_", "-"): bins[name] for name in ("mean", "link", "link_window_us", "assignment", "block")}
    options |= {name.replace("_", "-"): ranking[name] for name in ("score", "keep_max_rows", "control_ratio", "control_min_rows")}
    options |= {"keep-share": ranking["keep_share"]} if ranking["keep_count"] is None else {"keep-count": ranking["keep_count"]}
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [*arguments, *(["--features", *bins["features"]] if bins["features"] else [])]


def further_bins():
    """Return the names of the tables of bins of further widths, and the arguments of `bin_launches` that ask for them."""
    widths = [width for width in config["bins"]["more_widths_us"] if width != config["bins"]["width_us"]]
    return [f"bins_{round(1000 * width)}ns" for width in widths], ["--more-widths-us", *map(str, widths)] if widths else []


def config_hash():
    """Return a hash of the configuration, which tells one analysis from another."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]


def overview_settings():
    """Return the choices that the overview's methods section states."""
    return {key: config[key] for key in ("bins", "ranking", "causes", "seed")}


def everything():
    """Return the files that `all` builds beside the overview and the findings: the figures of every dataset and target."""
    figures = "causal_graphs causal_graph_dataset.svg examined_causes.html agreement.svg parallel_coordinates parallel_coordinates.svg"
    figures = [*figures.split(), "bins.svg", "kernels.svg"]
    return [path for figure in figures for path in each_target(f"results/{{dataset}}/{{target}}/figures/{figure}")]


def mb(paths):
    """Return the size of files in MB, those in folders included; Snakemake's own `size_mb` counts a folder as nothing, and warns in reports."""
    return sum(file.stat().st_size for path in map(Path, paths) for file in (path.rglob("*") if path.is_dir() else [path])) / 1e6


def input_mb(wildcards, input, attempt):
    """Return memory in MB for a step that streams its input: a base, a fraction of the input, more at each attempt."""
    return int((1500 + 0.2 * mb(input)) * attempt)


def rows_mb(wildcards, input, attempt):
    """Return memory in MB for a step that holds its input as columns: a base, several times the input's files, more at each attempt."""
    return int((2500 + 12 * mb(path for path in input if not Path(path).is_dir())) * attempt)


def an_hour(wildcards, attempt):
    """Return 60 minutes, more at each attempt: the causal steps cap their rows, so their time hardly depends on the input."""
    return 60 * attempt


def input_minutes(wildcards, input, attempt):
    """Return run time in minutes from the input's size, more at each attempt."""
    return int((10 + mb(input) / 500) * attempt)
