"""What the rules of levels.smk ask for: the whole dataset behind a reduced one, and what the names of windows refer to.

Required: what common.smk sets. Sets: REDUCED (a wildcard's pattern of the reduced datasets).
"""

REDUCED = one_of(config["filters"])


def whole_folders(wildcards):
    """Return the folders of tables of the dataset from which a reduced one is made, in the sheet's order."""
    source = config["filters"][wildcards.dataset]["dataset"]
    return [f"results/{source}/tables/{row.export}" for row in exports_of(source)]


def whole_clocks(wildcards):
    """Return the clocks of the dataset from which a reduced one is made."""
    return f"results/{config['filters'][wildcards.dataset]['dataset']}/clocks.json"


def filter_settings(wildcards):
    """Return what `filters` says of a reduced dataset."""
    return config["filters"][wildcards.dataset]


def window_basis(wildcards):
    """Return what a window's name refers to beside times: the bins of a target, or the findings with the rows that they rest on."""
    name, home = wildcards.window, f"results/{wildcards.dataset}"
    if name.startswith("bin_"):
        return [f"{home}/{target}/bins.parquet" for target in targets_of(wildcards.dataset) if name.startswith(f"bin_{target}_r")]
    return ["results/findings.json", *finding_basis(wildcards)] if name.startswith("finding_") else []


def finding_basis(wildcards):
    """Return the rows from which the window of a finding is found."""
    home = f"results/{wildcards.dataset}"
    return [f"{home}/{target}/{table}.parquet" for target in targets_of(wildcards.dataset) for table in ("bins", "kept")]


def explorer_assets():
    """Return what stands for the files of the explorer's page that are not Python."""
    return stamp("explorer", sorted((BASE / "scripts/causeway/levels/assets").iterdir()))


def explorers():
    """Return the explorer of every traced dataset."""
    return [f"results/{dataset}/explorer" for dataset in TRACED]
