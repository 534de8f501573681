"""The inputs of the rules of levels.smk: the whole dataset of a reduced one, and the tables that a window's name needs.

Required: what config.smk sets. Sets: REDUCED (a wildcard's pattern of the reduced datasets).
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
    """Return the entry of a reduced dataset in `filters`."""
    return config["filters"][wildcards.dataset]


def window_basis(wildcards):
    """Return the tables that a window's name refers to: a target's bins, or the findings with their evidence."""
    name, home = wildcards.window, f"results/{wildcards.dataset}"
    if name.startswith("bin_"):
        return [
            f"{home}/{target}/bins.parquet"
            for target in targets_of(wildcards.dataset)
            if name.startswith(f"bin_{target}_r")
        ]
    return ["results/findings.json", *finding_basis(wildcards)] if name.startswith("finding_") else []


def finding_basis(wildcards):
    """Return the tables of the findings' evidence, which give the window of a finding."""
    home = f"results/{wildcards.dataset}"
    return [
        f"{home}/{target}/{table}.parquet" for target in targets_of(wildcards.dataset) for table in ("bins", "kept")
    ]
