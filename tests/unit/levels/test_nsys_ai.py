"""Another program reads our windows: nsys-ai 0.3.0 (PyPI) in an environment of its own, made for this test alone.

It is no dependency of the tests, as it brings 290 MB with it, DuckDB and a terminal interface among them.
"""

import json
import subprocess
import sys
import venv

import pyarrow.compute as pc
import pytest

from causeway.core.tables import read_table
from causeway.inputs.session_clocks import align
from causeway.levels.windows.nsys_sqlite import write_nsys
from causeway.levels.windows.window import read_window
from causeway.readers.normalise import normalise

PEER = "nsys-ai==0.3.0"


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Return a function that runs the program and gives its output."""
    home = tmp_path_factory.mktemp("peer")
    venv.create(home, with_pip=True)
    made = subprocess.run([home / "bin/pip", "install", "--quiet", PEER], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"{PEER} cannot be installed here: {made.stderr.strip().splitlines()[-1]}")

    def run(*arguments):
        line = [home / "bin/nsys-ai", *map(str, arguments)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    return run


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform == "win32", reason="the environment's programs lie elsewhere there")
def test_nsys_ai_reads_a_window_with_the_same_kernels_and_copies(peer, data, tmp_path):
    folder = tmp_path / "d" / "tables" / "0"
    normalise(data / "nsys_sqlite/nsys-ai/mfu_2gpu_before.sqlite", folder, export="0", source="mfu.sqlite", form="nsys")
    window = read_window("whole", tmp_path / "d", {"0": folder}, align("d", [folder]), {"0": "n0"})
    path = tmp_path / "w.sqlite"
    write_nsys(window, path)
    launches, transfers = (read_table(folder / f"{name}.parquet", name) for name in ("launches", "transfers"))
    said = peer("info", path)
    assert f"Kernels: {launches.num_rows} " in said
    devices = launches["device"].value_counts().to_pylist()
    for device in devices:
        assert f"GPU {device['values']}:" in said
        assert f"Kernels={device['counts']} " in said
    copies = transfers.filter(pc.not_equal(transfers["copy_kind"], 255))
    found = json.loads(peer("skill", "run", "memory_transfers", path, "--format", "json"))
    by_kind = {entry["copyKind"]: entry["count"] for entry in found}
    assert by_kind == {entry["values"]: entry["counts"] for entry in copies["copy_kind"].value_counts().to_pylist()}
    kernels = json.loads(peer("skill", "run", "top_kernels", path, "--format", "json"))
    by_name = {}
    names = {row["kernel"]: row["name"] for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
    shapes = read_table(folder / "configurations.parquet", "configurations")["kernel"].to_pylist()
    for configuration, duration in zip(
        launches["configuration"].to_pylist(), launches["duration_ns"].to_pylist(), strict=True
    ):
        by_name.setdefault(names[shapes[configuration]], []).append(duration)
    assert len(kernels) > 5
    for kernel in kernels:
        mine = by_name[kernel["kernel_name"]]
        assert kernel["invocations"] == len(mine)
        assert kernel["total_ms"] == pytest.approx(sum(mine) / 1e6, abs=0.006)
    peer("export", path, "--trim", "0", "1000", "-o", tmp_path / "out")
    assert list((tmp_path / "out").iterdir())
    peer("diagnose", path, "--format", "json")
