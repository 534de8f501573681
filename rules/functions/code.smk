"""Code among the inputs of jobs: a small file for each part of the package, so that a change runs again what needs it and a plan stays readable.

Required: what common.smk sets.
"""


def stamp(name, files):
    """Return a small file that holds a digest of `files`; it changes when one of them does, and then alone."""
    digest = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()
    path = Path(".snakemake", "causeway", name)
    if not path.is_file() or path.read_text() != digest:
        path.parent.mkdir(parents=True, exist_ok=True)
        own = path.with_name(f"{name}.{os.getpid()}")
        own.write_text(digest)
        own.replace(path)
    return str(path)


def modules(*wings):
    """Return what stands for the package's code that a job runs: the ground floor and the named wings."""
    package = BASE / "scripts" / "causeway"
    files = {"ground": [package / f"{name}.py" for name in GROUND]}
    for wing in wings:
        files[wing] = [package / f"{wing}.py"] if (package / f"{wing}.py").is_file() else sorted((package / wing).rglob("*.py"))
    return [stamp(name, sources) for name, sources in files.items()]


def column_maps():
    """Return what stands for the maps from vendors' column names to ours."""
    return stamp("columns", sorted((BASE / "config" / "columns").iterdir()))
