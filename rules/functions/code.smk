"""Code among the inputs of jobs: a digest file for each part of the package; a change reruns the jobs that use it.

Required: what config.smk sets.
"""


def digest_of(files):
    """Return the SHA-256 of the content of files, in their order."""
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


def stamp(name, files):
    """Return the path of a file that stands for the content of `files`: its name holds their digest, so that another
    content is another input, and one that comes back is the input that it was.
    """
    path = Path(".snakemake", "causeway", f"{name}.{digest_of(files)[:16]}")
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return str(path)


@functools.cache
def module_stamp(part):
    """Return the digest of a wing or module, or of a folder of the lab; most rules ask for those of the ground floor."""
    home = BASE if part.startswith("lab/") else PACKAGE
    return stamp(".".join(Path(part).parts), sorted([*(home / part).rglob("*.py"), *home.glob(f"{part}.py")]))


KNOWN_COLUMNS = [
    BASE / "config" / name for name in ("features.yaml", "prior_knowledge.tsv", "suggestions.yaml", "tables.tsv")
]
"""What is known of columns: the tables that have them, their records, what is known of them before any data, what to try
about them.
"""


@functools.cache
def known_columns():
    """Return the digest of what is known of columns."""
    return stamp("known_columns", KNOWN_COLUMNS)


def modules(*parts):
    """Return the digests of the code that a job runs: the ground floor's, and those of the named wings or modules."""
    return [*(module_stamp(part) for part in (*GROUND, *parts)), known_columns()]


def assets(room):
    """Return what stands for the templates, style sheets and scripts of the pages that a room of the package writes."""
    files = (PACKAGE / room / "assets").iterdir()
    return stamp(f"{room.replace(os.sep, '.')}.assets", sorted(files))


def column_maps():
    """Return the digest of the maps from vendors' column names to ours."""
    return stamp("columns", sorted((BASE / "config" / "columns").iterdir()))


def document_schemas():
    """Return the digest of the JSON schemas of documents, which are published beside the results."""
    return stamp("schemas", sorted((BASE / "config" / "schemas").glob("*.schema.json")))


def code_digest(wildcards):
    """Return the SHA-256 of all code of the package and what it knows of columns, which tells apart two states of one
    version.
    """
    return digest_of([*sorted(PACKAGE.rglob("*.py")), *sorted((BASE / "config" / "columns").iterdir()), *KNOWN_COLUMNS])


def steps_of_workflow(wildcards):
    """Return as JSON what the rules run, each its script or its command with placeholders. The lab's are no steps of an
    analysis: a clone and a wheel say the same.
    """
    own = [rule for rule in workflow.rules if not Path(rule.snakefile).is_relative_to(BASE / "lab")]
    named = {rule.name: rule.shellcmd or rule.script for rule in own}
    texts = {name: " ".join(str(text).split()).removeprefix("../") for name, text in named.items() if text}
    return as_parameter(texts)
