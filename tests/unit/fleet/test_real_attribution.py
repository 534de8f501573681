"""Attribution on real exports: runs that were not learnt from are recognised, programs that are not in the catalogue
are rejected.
"""

import shutil

import numpy as np
import pytest
from deployment import SETTINGS, run_of

from causeway.core.errors import CausewayError
from causeway.fleet.attribution import catalogue
from causeway.fleet.attribution.attribution import UNKNOWN, attribute
from causeway.fleet.attribution.exports import runs_of, streams
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


@pytest.mark.parametrize(("launches", "least"), [(8, 0.95), (64, 0.99)])
def test_another_run_of_a_program_is_recognised(tables, learnt, launches, least):
    names = [entry.name for entry in learnt.applications]
    for name, path in OTHER_RUNS.items():
        decided = decisions(learnt, tables(path), launches)
        assert (decided == names.index(name)).mean() >= least, name
        assert not ((decided != names.index(name)) & (decided != UNKNOWN)).any(), name


@pytest.mark.parametrize(("launches", "most"), [(8, 0.01), (64, 0.0)])
def test_programs_that_are_not_in_the_catalogue_are_rejected(tables, learnt, launches, most):
    decided = np.concatenate([decisions(learnt, tables(path), launches) for path in STRANGERS])
    assert len(decided) > 400
    assert (decided != UNKNOWN).mean() <= most


def test_a_trace_that_was_thinned_out_is_not_recognised(tables, learnt):
    """Its launches do not follow each other as they ran: rejecting it is all that can be done, and it is no one
    else's either.
    """
    assert (decisions(learnt, tables(THINNED), 64) == UNKNOWN).all()
