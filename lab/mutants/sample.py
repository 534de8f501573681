"""Places drawn at random in the rooms where a mistake costs most, with the tests that should notice."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from lab.mutants.listed import listed
from lab.mutants.mutant import ROOT
from lab.mutants.operators import Change, changes

CAUSEWAY = "scripts/causeway/"
ROOMS = {
    "numeric": {
        "numeric/moments.py": ("numeric/test_moments.py",),
        "numeric/intervals.py": ("numeric/test_intervals.py",),
        "events/few_values.py": ("events/test_few_values.py",),
        "numeric/slice_statistics.py": ("numeric/test_slice_statistics.py",),
        "numeric/effective_size.py": ("numeric/test_effective_size.py",),
        "numeric/seeds.py": ("numeric/test_seeds.py",),
    },
    "writers": {
        "core/files/whole_files.py": ("core/files", "core/test_tables.py"),
        "core/files/checksums.py": ("core/files/test_checksums.py",),
        "core/files/machine_errors.py": ("core/files", "readers/test_machine_faults.py"),
        "core/files/checked_parquet.py": ("core/files", "core/test_tables.py"),
        "core/tables.py": ("core/test_tables.py", "core/files"),
    },
    "readers' limits": {
        "readers/common/packed.py": ("readers/containers/test_unpacking.py", "readers/containers/test_bombs.py"),
        "readers/containers/sqlite_database.py": ("readers/containers", "readers/test_reader_damage.py"),
        "readers/containers/arrow_tables.py": ("readers/containers", "readers/nvidia/test_nsys_forms.py"),
    },
    "normalising": {
        "readers/detect.py": ("readers/test_detect.py",),
        "readers/sink/distinct.py": ("readers/sink/test_distinct.py",),
        "readers/sink/event_times.py": ("readers/sink/test_event_times.py",),
        "readers/sink/external_sort.py": ("readers/sink/test_external_sort.py",),
        "readers/sink/processes.py": ("readers/sink/test_processes.py",),
        "readers/sink/stream_order.py": ("readers/sink/test_stream_order.py",),
    },
    "bins": {
        "variability/bins/ranking.py": ("variability/test_ranking.py",),
        "variability/bins/bins.py": ("variability",),
        "variability/bins/passes.py": ("variability",),
        "variability/bins/summaries.py": ("variability",),
        "variability/bins/kept.py": ("variability",),
        "efficiency/device_time/sweep.py": ("efficiency/test_sweep.py", "efficiency/test_time_line.py"),
    },
    "escaping": {
        "plotting/drawing/markup.py": ("plotting/drawing/test_markup.py", "plotting/drawing/test_page.py"),
        "plotting/drawing/citations.py": ("plotting/drawing/test_citations.py", "plotting/overview"),
        "core/queries.py": ("core/test_queries.py",),
    },
    "protection": {
        "fleet/protection/secret_sharing.py": ("fleet/test_protection.py", "fleet/test_deployment_attacks.py"),
        "fleet/protection/envelope.py": (
            "fleet/test_stated_bounds.py",
            "fleet/test_protection.py",
            "fleet/test_deployment_attacks.py",
        ),
        "fleet/protection/aggregator.py": ("fleet/test_protection.py", "fleet/test_deployment_attacks.py"),
        "fleet/protection/local_dp.py": ("fleet/test_stated_bounds.py", "fleet/test_protection.py"),
        "fleet/protection/ledger.py": (
            "fleet/test_stated_bounds.py",
            "fleet/test_release.py",
            "fleet/test_deployment_attacks.py",
        ),
        "fleet/protection/noise.py": (
            "fleet/test_stated_bounds.py",
            "fleet/test_release.py",
            "fleet/test_protection.py",
        ),
    },
    "decisions": {
        "comparison/gate.py": ("comparison/test_gate.py",),
        "comparison/change_verdicts.py": ("comparison/test_change_verdicts.py",),
        "causal/selection/linear_model.py": ("causal/discovery/test_multiple_testing.py",),
        "causal/discovery/arrows.py": ("causal/discovery/test_multiple_testing.py",),
        "causal/report/across_kernels.py": ("causal/report/test_across_kernels.py",),
    },
}
"""By room: module, relative to the package, and its tests below `tests/unit`."""
BESIDE = {
    "numeric/moments.py": ("variability/test_program.py",),
    "numeric/intervals.py": ("efficiency", "waiting"),
    "events/few_values.py": ("efficiency", "variability/test_program.py"),
    "numeric/slice_statistics.py": ("variability",),
    "numeric/effective_size.py": ("causal/discovery",),
    "core/files/whole_files.py": ("readers/test_machine_faults.py",),
    "core/files/checked_parquet.py": ("readers/sink",),
    "core/tables.py": ("readers/sink", "variability/test_program.py"),
    "readers/common/packed.py": ("readers/pytorch", "readers/test_reader_damage.py"),
    "readers/containers/sqlite_database.py": ("readers/nvidia", "readers/amd", "readers/test_every_export.py"),
    "readers/containers/arrow_tables.py": (
        "readers/nvidia",
        "readers/test_reader_damage.py",
        "readers/test_every_export.py",
    ),
    "readers/detect.py": ("readers/test_every_export.py", "command_line"),
    "readers/sink/distinct.py": ("readers/nvidia", "readers/pytorch"),
    "readers/sink/event_times.py": ("readers/nvidia", "readers/pytorch"),
    "readers/sink/external_sort.py": ("readers/nvidia", "readers/pytorch"),
    "readers/sink/processes.py": ("readers/nvidia", "readers/pytorch"),
    "readers/sink/stream_order.py": ("readers/nvidia", "readers/pytorch"),
    "efficiency/device_time/sweep.py": ("efficiency",),
    "core/queries.py": ("api", "findings"),
    "comparison/gate.py": ("plotting/pages/test_gate_summary.py",),
    "comparison/change_verdicts.py": ("comparison",),
    "causal/selection/linear_model.py": ("causal/report", "causal/discovery"),
    "causal/report/across_kernels.py": ("causal/report",),
    "fleet/protection/aggregator.py": ("fleet",),
    "fleet/protection/ledger.py": ("fleet",),
    "fleet/protection/noise.py": ("fleet",),
}
"""By module: tests of the modules that use it, which are tried on what its own tests let pass."""


@dataclass(frozen=True)
class Place:
    """A change of a module, its own tests, and those of its users."""

    room: str
    file: str
    change: Change
    tests: tuple[str, ...]
    beside: tuple[str, ...]
    listed: bool


def drawn(each: int, seed: int, only: str = "") -> Iterator[Place]:
    """Give so many changes of each room whose name holds a text, the same for the same seed."""
    unseen = {(place.file, place.line, place.what) for place in listed()}
    for room, modules in ROOMS.items():
        if only not in room:
            continue
        places = []
        for module, tests in modules.items():
            source = (ROOT / CAUSEWAY / module).read_text(encoding="utf-8")
            lines = source.splitlines()
            for change in changes(source):
                is_unseen = (module, lines[change.line - 1].strip(), change.what) in unseen
                places.append(Place(room, CAUSEWAY + module, change, tests, BESIDE.get(module, ()), is_unseen))
        # the same draw wherever and whenever it is made: no choice of a secret hangs on it
        yield from random.Random(f"{seed}/{room}").sample(places, min(each, len(places)))
