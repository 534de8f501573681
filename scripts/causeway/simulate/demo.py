"""The demonstration run: kernels named as a training step's, and what is planted in them."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from causeway.core.errors import CausewayError
from causeway.core.files.yaml_files import read_yaml
from causeway.core.installation import workflow_folder
from causeway.simulate.scenario import Copy, Scenario, SimulatedKernel, check

PROGRAM_REPEATS = 5
FILE = Path(__file__).parent / "assets" / "demo.yaml"
DEMONSTRATION: dict[str, Any] = read_yaml(workflow_folder() / "config" / "config.yaml")["simulated"]["demo"]
"""The run `demo` of the configuration: what is set differs from the plain scenario so that every part of a report has
something to show. One cause costs its kernel more than 5 % of its time.
"""


def demo_parts() -> tuple[tuple[SimulatedKernel, ...], tuple[Copy, ...]]:
    """Return the kernels of the demonstration run, the planted causes with them, and its copies."""
    parts = read_yaml(FILE)
    kernels: Iterator[dict[str, Any]] = (
        {name: tuple(value) if isinstance(value, list) else value for name, value in kernel.items()}
        for kernel in parts["kernels"]
    )
    return tuple(SimulatedKernel(**kernel) for kernel in kernels), tuple(Copy(**copy) for copy in parts["copies"])


def trace_scenario(values: Mapping[str, Any] | None = None) -> Scenario:
    """Return the demonstration run with the given values in place of its own.

    Parameters
    ----------
    values : mapping or None
        Fields of `Scenario`, and `causes`: for a kernel's short name the causes that replace its own, `{}` for none.

    Raises
    ------
    CausewayError
        For an unknown key, kernel or cause, or a value out of its range.
    """
    values = dict(values or {})
    causes = values.pop("causes", None) or {}
    known = {field.name for field in dataclasses.fields(Scenario)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise CausewayError(
            f"simulated trace: unknown keys {unknown}; known are {', '.join(sorted(known | {'causes', 'kind'}))}"
        )
    kernels, copies = demo_parts()
    parts: dict[str, Any] = {
        "kernels": kernels,
        "program": (0, 1, 2, 3, 4) * PROGRAM_REPEATS,
        "closing": (5,) * PROGRAM_REPEATS + (6,),
        "neighbour": 7,
        "copies": copies,
        **values,
    }
    parts["without"] = tuple(parts.get("without", ()))
    parts.setdefault("nodes", min(Scenario.nodes, parts.get("ranks", Scenario.ranks)))  # no node without a rank
    names = [kernel.short_name for kernel in parts["kernels"]]
    unknown = sorted(set(causes) - set(names))
    if unknown:
        raise CausewayError(f"simulated trace: causes for unknown kernels {unknown}; known are {names}")
    parts["kernels"] = tuple(
        dataclasses.replace(kernel, causes=causes[kernel.short_name]) if kernel.short_name in causes else kernel
        for kernel in parts["kernels"]
    )
    scenario = Scenario(**parts)
    check(scenario)
    return scenario
