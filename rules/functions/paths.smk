"""The paths that rules name as inputs, by dataset, target and export.

Required: what config.smk sets. Sets: EXPORTS_OF (the rows of each dataset, in the sheet's order).
"""

EXPORTS_OF = {}
for (dataset, _), row in EXPORTS.items():
    EXPORTS_OF.setdefault(dataset, []).append(row)


def exports_of(dataset):
    """Return the rows of a dataset, in the sheet's order."""
    return EXPORTS_OF.get(dataset, [])


def export_row(wildcards):
    """Return the sheet's row of a job."""
    return EXPORTS[wildcards.dataset, wildcards.export]


def export_source(wildcards):
    """Return the input of a job: the export, the folder of the simulated run that holds it, or of its conversion."""
    row = export_row(wildcards)
    if folder := conversion_folder(wildcards):
        return folder
    return f"results/simulated/{row.simulated_run}" if row.simulated_run else str(row.path)


def conversion_folder(wildcards):
    """Return the folder of what a profiler's own tool makes of a job's export; empty unless that is a report."""
    row = export_row(wildcards)
    return f"results/{wildcards.dataset}/converted/{row.export}" if report_kind(row.path) else ""


def conversion_tool(wildcards):
    """Return the program that converts a job's report, or None: where one appears, the report is read again."""
    return tool_for(export_row(wildcards).path, config["tools"])


def export_path(wildcards):
    """Return the export itself."""
    row = export_row(wildcards)
    return f"results/simulated/{row.simulated_run}/{row.path}" if row.simulated_run else str(row.path)


def export_state(wildcards):
    """Return the state of the file or folder that the sheet names; empty for a simulated export, which a rule makes."""
    row = export_row(wildcards)
    return "" if row.simulated_run else state_of(row.path)


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


def runs(wildcards):
    """Return the repeat of the job that each export of a dataset was recorded in."""
    return {row.export: row.run for row in exports_of(wildcards.dataset)}


def table_folders(wildcards):
    """Return the folders of tables of a dataset, in the sheet's order."""
    return [f"results/{wildcards.dataset}/tables/{row.export}" for row in exports_of(wildcards.dataset)]


def telemetry_files(wildcards):
    """Return the files of telemetry of a dataset, each once."""
    return list(dict.fromkeys(str(row.path) for row in TELEMETRY[wildcards.dataset]))


def telemetry_rows(wildcards):
    """Return the rows of the sheet of telemetry for a dataset, each with the path of its file."""
    names = ("source", "node", "device", "format", "time_zone", "path")
    return [{name: str(getattr(row, name)) for name in names} for row in TELEMETRY[wildcards.dataset]]


def telemetry_states(wildcards):
    """Return the states of the files of telemetry of a dataset."""
    return [state_of(row.path) for row in TELEMETRY[wildcards.dataset]]


def telemetry_of(wildcards, name="telemetry.parquet"):
    """Return the telemetry of a dataset, that of the whole one for a reduced one; nothing where there is none."""
    dataset = config["filters"].get(wildcards.dataset, {}).get("dataset", wildcards.dataset)
    return [f"results/{dataset}/{name}"] if dataset in TELEMETRY else []


def telemetry_document(wildcards):
    """Return what is known of the telemetry of a dataset, likewise."""
    return telemetry_of(wildcards, "telemetry.json")


def steps_of(wildcards):
    """Return the steps of a dataset of traces; nothing for other datasets."""
    return [f"results/{wildcards.dataset}/steps.parquet"] if wildcards.dataset in TRACED else []


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
