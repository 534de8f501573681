"""Offsets of text in an Arrow file that lead outside of its bytes, or backwards, are refused before they are followed."""

import numpy as np
import pyarrow as pa
import pytest

from causeway.readers.containers.arrow_tables import MappedFile, StreamTable


@pytest.mark.parametrize("offsets", [[0, 3, 999], [0, 5, 3], [-7, 3, 6]], ids=["outside", "backwards", "negative"])
def test_wrong_offsets_are_refused(tmp_path, offsets):
    wrong = pa.py_buffer(np.asarray(offsets, dtype=np.int32).tobytes())
    batch = pa.record_batch([pa.array(["abc", "def"])], names=["name"])
    path = tmp_path / "table.arrow"
    with pa.ipc.new_stream(str(path), batch.schema) as stream:
        stream.write_batch(batch)
    packed = path.read_bytes()
    sound = np.asarray([0, 3, 6], dtype=np.int32).tobytes()
    assert packed.count(sound) == 1
    path.write_bytes(packed.replace(sound, wrong.to_pybytes()))
    file = MappedFile(path)
    table = StreamTable(file, 0, batch.schema, len(packed))
    with pytest.raises(pa.ArrowInvalid):
        list(table.batches(["name"]))
