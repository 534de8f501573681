"""What an agent reports of real exports: runs that were not learnt from are recognised, programs that are not in the
catalogue are rejected, and variability is that of kernels by name.
"""

import shutil
import statistics
from pathlib import Path

import numpy as np
import pytest
from deployment import RUNS, SETTINGS, Deployment, run_of

from causeway.core.errors import CausewayError
from causeway.fleet.attribution import catalogue, exports
from causeway.fleet.attribution.attribution import UNKNOWN, attribute
from causeway.fleet.attribution.exports import SampledWindow, runs_of, streams
from causeway.fleet.deployment import agent
from causeway.fleet.study import steps
from causeway.readers.normalise import normalise

LEARNT = {
    "training": "nsys_sqlite/nsys-ai/mfu_2gpu_before.sqlite",
    "gaussian": "nsys_sqlite/rodinia-gaussian/report3.sqlite",
    "resnet50": "kineto/kineto-samples/resnet50_num_workers_0.pt.trace.json.gz",
    "sampled": "kineto/hta/sampled_rank-0.json.gz",
}
OTHER_RUNS = {
    "training": "nsys_sqlite/nsys-ai/mfu_2gpu_after.sqlite",
    "gaussian": "nsys_sqlite/rodinia-gaussian/report5.sqlite",
    "resnet50": "kineto/kineto-samples/resnet50_num_workers_4.pt.trace.json.gz",
}
TILES = ("ampere_sgemm_128x128_nn", "ampere_sgemm_64x32_nn")
"""Kernels that differ in tile size alone."""
THINNED = "kineto/hta/sampled_rank-1.json.gz"
STRANGERS = (
    "nsys_sqlite/pipit/perlmutter-cloverleaf-cuda.sqlite",
    "nsys_sqlite/nukexc/report1.sqlite",
    "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite",
    "kineto/hta/nccl_data.json.gz",
    "kineto/hta/trace_diff_control.json.gz",
    "kineto/tracelens/b200_rank0_of_8.json.gz",
    "kineto/tracelens/mi300x_sglang_qwen3-8b.json.gz",
)


@pytest.fixture(scope="module")
def tables(data, tmp_path_factory):
    """Return a function that reads an export once and gives the folder of its tables."""
    folder = tmp_path_factory.mktemp("real")
    known = {}

    def read(path):
        if path not in known:
            known[path] = folder / str(len(known))
            normalise(data / path, known[path], export="0", source=path)
        return known[path]

    return read


def stream(launches):
    names = np.array([f"kernel{number % 5}" for number in range(launches)], dtype=object)
    start = np.arange(launches) * 1000
    return exports.LaunchStream(names=names, start_ns=start, duration_ns=np.full(launches, 500), device=(0, 0))


def test_a_dataset_from_which_nothing_can_be_learnt_is_named(monkeypatch):
    """Each stream of `short` has fewer than 32 launches; it would be missing in the catalogue, unsaid."""
    found = {"long": [stream(32), stream(3)], "short": [stream(31), stream(31)], "long2": [stream(3), stream(40)]}
    monkeypatch.setattr(exports, "streams", lambda folder: found[folder.parts[-3]])
    folders = [Path("results") / name / "tables" / "0" for name in found]
    assert [run.application for run in runs_of([folders[0], folders[2]])] == ["long", "long2"]
    with pytest.raises(CausewayError, match="fleet/learn_from: short: no stream has 32 launches"):
        runs_of(folders)


def test_a_dataset_called_as_a_simulated_application_is_refused(monkeypatch, tmp_path):
    """Its runs were learnt as that application's."""
    monkeypatch.setattr(exports, "streams", lambda folder: [stream(40)])
    settings = SETTINGS | {"applications": 4, "versions": 2, "unknown_applications": 2, "training_runs": 1}
    name = steps.suite_of(settings, 3).applications[1].name
    with pytest.raises(CausewayError, match=f"fleet/learn_from: {name}: a simulated application has that name"):
        steps.build_catalogue(settings, 3, runs_of([Path("results") / name / "tables" / "0"]), tmp_path / "catalogue")


@pytest.fixture(scope="module")
def learnt(tables):
    runs = [run for name, path in LEARNT.items() for run in run_of(name, tables(path))]
    return catalogue.build(runs, key=b"k" * 32, k=5, threshold=0.62, margin=0.01, slots=12, simulated=False)


def test_a_catalogue_learns_a_datasets_tables_beside_the_simulated_applications(tables, tmp_path):
    """As `fleet/learn_from` does it: the application is named after the dataset, and another run of it is
    recognised.
    """
    folder = tmp_path / "mine" / "tables" / "0"
    shutil.copytree(tables(LEARNT["gaussian"]), folder)
    settings = SETTINGS | {"applications": 4, "versions": 2, "unknown_applications": 2, "training_runs": 1}
    found = steps.build_catalogue(settings, 3, runs_of([folder]), tmp_path / "catalogue")
    assert found.applications[0].name == "mine"
    assert len(found.applications) == 5
    assert steps.read_catalogue(tmp_path / "catalogue").encoded() == found.encoded()
    assert (decisions(found, tables(OTHER_RUNS["gaussian"]), 64) == 0).mean() > 0.9


@pytest.mark.parametrize(
    ("change", "word"),
    [({"epsilon": SETTINGS["epsilon"] | {"kernels": 0.3}}, "budget"), ({"timed_launches": 65}, "timed_launches")],
)
def test_settings_that_cannot_be_are_refused_before_anything_runs(tmp_path, change, word):
    with pytest.raises(CausewayError, match=word):
        steps.build_catalogue(
            SETTINGS | {"applications": 4, "versions": 2, "unknown_applications": 2} | change, 3, [], tmp_path
        )


def decisions(found, folder, launches):
    """Return what is decided about each stretch of `launches` launches of an export's streams."""
    stretches = [
        found.tokens(stream.names[first : first + launches])
        for stream in streams(folder)
        for first in range(0, len(stream.names) - launches + 1, launches)
    ]
    assert len(stretches) >= 4
    return attribute(np.array(stretches), found).application


@pytest.mark.parametrize(("launches", "least"), [pytest.param(8, 0.95, marks=pytest.mark.slow), (64, 0.99)])
def test_another_run_of_a_program_is_recognised(tables, learnt, launches, least):
    names = [entry.name for entry in learnt.applications]
    for name, path in OTHER_RUNS.items():
        decided = decisions(learnt, tables(path), launches)
        assert (decided == names.index(name)).mean() >= least, name
        assert not ((decided != names.index(name)) & (decided != UNKNOWN)).any(), name


@pytest.mark.parametrize(("launches", "most"), [pytest.param(8, 0.01, marks=pytest.mark.slow), (64, 0.0)])
def test_programs_that_are_not_in_the_catalogue_are_rejected(tables, learnt, launches, most):
    decided = np.concatenate([decisions(learnt, tables(path), launches) for path in STRANGERS])
    assert len(decided) > 400
    assert (decided != UNKNOWN).mean() <= most


def test_a_trace_that_was_thinned_out_is_not_recognised(tables, learnt):
    """Its launches do not follow each other as they ran: rejecting it is all that can be done, and it is no one
    else's either.
    """
    assert (decisions(learnt, tables(THINNED), 64) == UNKNOWN).all()


def parameters_of(folder, runs):
    deployed = Deployment(folder, runs)
    return agent.read_public_parameters(deployed.public, deployed.pin)


def variability_of(names, duration_ns, parameters):
    """Return the bin of variability that a report of these launches fills, None if it fills none."""
    window = SampledWindow(
        names=np.array(names, dtype=object),
        duration_ns=np.array(duration_ns),
        busy=0.5,
        totals=np.ones(3),
    )
    section = parameters.layout.by_name["variability"]
    rows = agent.vector_of(window, parameters)[section.cells].reshape(section.rows, section.columns)
    assert rows.sum() <= 1
    return int(np.nonzero(rows)[1][0]) if rows.any() else None


def bin_by_hand(names, duration_ns):
    """Return the bin by definition: each kernel that was launched three times or more, by its own median."""
    times = {}
    for name, time in zip(names, duration_ns, strict=True):
        times.setdefault(name, []).append(int(time))
    kept = [each for each in times.values() if len(each) >= 3]
    whole = sum(map(sum, kept))
    if not whole:
        return None
    twice_off = sum(abs(2 * time - int(2 * statistics.median(each))) for each in kept for time in each)
    return sum(twice_off * one_in >= 2 * whole for one_in in (20, 10, 5))


@pytest.fixture(scope="module")
def tiled(tmp_path_factory):
    """Return the parameters of a deployment that knows a program whose kernels differ in tile size alone."""
    run = catalogue.TrainingRun(
        application="tiled", family="tiled", version="", names=list(TILES) * 32, durations=np.tile([3e4, 1e4], 32)
    )
    return parameters_of(tmp_path_factory.mktemp("tiled"), [run, RUNS[0]])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((30_000, 30_000), (10_000, 10_000), 0),  # each kernel as long as ever
        ((30_000, 30_000), (8_000, 12_000), 1),  # 2,000 of 10,000 off in a quarter of the time: .05
        ((27_000, 33_000), (10_000, 10_000), 1),  # 3,000 of 30,000 off in three quarters: .075
        ((20_000, 40_000), (5_000, 15_000), 3),  # 10,000 of 30,000 and 5,000 of 10,000: .375
    ],
)
def test_kernels_that_differ_in_tile_size_have_medians_of_their_own(tiled, first, second, expected):
    """The catalogue holds them as one token; their time is no variability."""
    assert len(set(tiled.catalogue.tokens(TILES).tolist())) == 1
    durations = [time for pair in zip(first * 16, second * 16, strict=True) for time in pair]
    names = list(TILES) * 32
    assert variability_of(names, durations, tiled) == bin_by_hand(names, durations) == expected


def test_a_real_programs_variability_is_that_of_its_kernels_by_name(tables, tmp_path):
    """All stretches of 64 launches, a quarter of it apart; by tokens a third of them lay in a higher bin."""
    folder = tables(LEARNT["sampled"])
    parameters = parameters_of(tmp_path / "deployed", run_of("sampled", folder))
    compared = 0
    for stream in streams(folder):
        for first in range(0, len(stream.names) - 63, 16):
            names = stream.names[first : first + 64].tolist()
            durations = np.maximum(stream.duration_ns[first : first + 64], 1)
            assert variability_of(names, durations, parameters) == bin_by_hand(names, durations)
            compared += 1
    assert compared > 50
