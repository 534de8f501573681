"""What an agent's report says of the launches that it sampled."""

import statistics

import numpy as np
import pytest
from deployment import RUNS, Deployment, run_of

from causeway.fleet.attribution.catalogue import TrainingRun
from causeway.fleet.attribution.exports import SampledWindow, streams
from causeway.fleet.deployment import agent
from causeway.readers.normalise import normalise

SAMPLED = "kineto/hta/sampled_rank-0.json.gz"
TILES = ("ampere_sgemm_128x128_nn", "ampere_sgemm_64x32_nn")


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
    run = TrainingRun(
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


def test_a_real_programs_variability_is_that_of_its_kernels_by_name(data, tmp_path):
    """All stretches of 64 launches, a quarter of it apart; by tokens a third of them lay in a higher bin."""
    normalise(data / SAMPLED, tmp_path / "tables", export="0", source=SAMPLED)
    parameters = parameters_of(tmp_path / "deployed", run_of("sampled", tmp_path / "tables"))
    compared = 0
    for stream in streams(tmp_path / "tables"):
        for first in range(0, len(stream.names) - 63, 16):
            names = stream.names[first : first + 64].tolist()
            durations = np.maximum(stream.duration_ns[first : first + 64], 1)
            assert variability_of(names, durations, parameters) == bin_by_hand(names, durations)
            compared += 1
    assert compared > 50
