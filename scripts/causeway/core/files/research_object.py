"""What a run was made of, as a Research Object Crate: versions, configuration, inputs with their hashes, seeds, steps.

The document is JSON-LD after version 1.1 of RO-Crate (https://www.researchobject.org/ro-crate/specification/1.1/). It
is made of its arguments alone: no clock, no random identifier, no path, user or host, so that equal inputs give equal
bytes.
"""

import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from causeway.core.files.yaml_files import read_yaml
from causeway.core.installation import RELEASED, VERSION

FILE = Path(__file__).parent / "assets" / "research_object.yaml"
"""What stands in every crate."""
PATH_KEYS = ("datasets", "traces", "telemetry", "tools")
"""Keys of the configuration that hold paths."""
PACKAGES = (
    *("snakemake", "numpy", "scipy", "pandas", "pyarrow", "numba", "scikit-learn", "causal-learn", "dowhy"),
    *("adbc-driver-sqlite", "msgspec", "ddsketch", "mpi4py", "matplotlib", "seaborn", "plotly", "pygraphviz"),
)
"""Packages that compute or draw."""


def installed_versions() -> dict[str, str | None]:
    """Return the versions of Python and of `PACKAGES`; None where one is not installed."""
    versions: dict[str, str | None] = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def research_object(
    exports: Sequence[Mapping[str, Any]],
    telemetry: Iterable[tuple[str, Mapping[str, Any]]],
    settings: Mapping[str, Any],
    steps: Mapping[str, str],
    versions: Mapping[str, str | None],
    code: str,
) -> dict[str, Any]:
    """Return the crate's document.

    Parameters
    ----------
    exports : sequence of mapping
        The capabilities of each export, each with its `dataset`.
    telemetry : iterable of (str, mapping)
        Dataset of each row of the sheet of telemetry, and its entry in `telemetry.json`.
    settings : mapping
        The configuration; the keys of `PATH_KEYS` are left out.
    steps : mapping of str to str
        What each rule of the workflow runs: its script, or its command with placeholders.
    versions : mapping of str to (str or None)
        Versions of Python and of packages; None where one is not installed for the step that writes this.
    code : str
        SHA-256 of the code of the package.

    Returns
    -------
    dict
        JSON-LD: `@context` and the flat `@graph`, the descriptor and the root first.
    """
    template = read_yaml(FILE)
    inputs = [*map(_export, exports), *_telemetry(telemetry)]
    inputs = list({entity["@id"]: entity for entity in inputs}.values())
    parameters = [*_parameters(settings, template["seeds"])]
    software = [_package(name, version) for name, version in versions.items()]
    rules = [
        {"@id": f"#step/{quote(name)}", "@type": "HowToStep", "name": name, "text": text}
        for name, text in sorted(steps.items())
    ]
    folders = dict.fromkeys(f"{quote(str(export['dataset']), safe='')}/" for export in exports)
    parts = [
        *template["parts"],
        *({"@id": folder, "@type": "Dataset", "name": f"Results of the dataset {folder[:-1]}"} for folder in folders),
    ]
    root = template["root"] | {"datePublished": RELEASED, "hasPart": _refer(parts)}
    root["description"] = root["description"].format(version=VERSION)
    action = template["action"] | {"object": [*_refer(inputs), *_refer(parameters)]}
    facts = {
        "softwareVersion": VERSION,
        "sha256": code,
        "softwareRequirements": _refer(software),
        "step": _refer(rules),
    }
    fixed = [template["descriptor"], root, *parts, template["licence"], action, template["program"] | facts]
    return {"@context": template["context"], "@graph": [*fixed, *inputs, *parameters, *rules, *software]}


def _refer(entities: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return references to entities, in their order."""
    return [{"@id": entity["@id"]} for entity in entities]


def _export(export: Mapping[str, Any]) -> dict[str, Any]:
    """Return one export: its file's name, what it was read as, and its hash if it could be read to the end."""
    entity = _input(export["dataset"], export["export"], export["source"])
    facts = {"sha256": export["sha256"], "contentSize": export["bytes"], "encodingFormat": export["format"]}
    said = f"Export {export['export']} of dataset {export['dataset']}: {export['status']}"
    if export["sha256"] is None:
        said += "; without a hash, since it could not be read to its end"
    return entity | {"description": said} | {name: str(value) for name, value in facts.items() if value is not None}


def _telemetry(telemetry: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterable[dict[str, Any]]:
    """Yield each file of telemetry with its hash; files of one name, in different folders, are numbered."""
    seen: Counter[tuple[str, str]] = Counter()
    for dataset, source in telemetry:
        name = PurePosixPath(source["source"]).name
        seen[dataset, name] += 1
        within = name if seen[dataset, name] == 1 else f"{name}/{seen[dataset, name]}"
        facts = {"sha256": source.get("sha256"), "contentSize": source.get("bytes")}
        said = f"Telemetry of dataset {dataset}; what was read of it stands in telemetry.json"
        entity = _input(dataset, f"telemetry/{within}", source["source"]) | {"description": said}
        yield entity | {key: str(value) for key, value in facts.items() if value is not None}


def _input(dataset: str, name: str, source: str) -> dict[str, Any]:
    """Return an input by its names in the sheet and the last part of its path alone."""
    # a contextual entity, no file of the crate: inputs do not travel with the results, and their folders name a machine
    return {
        "@id": f"#input/{quote(str(dataset))}/{quote(str(name))}",
        "@type": "CreativeWork",
        "name": PurePosixPath(source).name,
    }


def _parameters(settings: Mapping[str, Any], seeds: str) -> Iterable[dict[str, Any]]:
    """Return a property for each section of the configuration, its value as JSON; `seeds` says what the seed is for."""
    for name, value in sorted(settings.items()):
        if name not in PATH_KEYS:
            entity = {"@id": f"#setting/{quote(name)}", "@type": "PropertyValue", "name": name}
            text = value if isinstance(value, int | str) else json.dumps(value, sort_keys=True)
            yield entity | {"value": text} | ({"description": seeds} if name == "seed" else {})


def _package(name: str, version: str | None) -> dict[str, Any]:
    """Return a package that computes, or the sentence that its version is not known here."""
    entity = {"@id": f"#package/{quote(name)}", "@type": "SoftwareApplication", "name": name}
    if version is None:
        return entity | {"description": "Not installed for the step that wrote this; envs/ and the lock state it."}
    return entity | {"softwareVersion": version}
