"""Arguments of collectives that no column can hold are no value, whatever stands in the trace."""

from types import SimpleNamespace

import numpy as np
import pytest

from causeway.readers.pytorch.collective_arguments import take_collectives

NULL = -(1 << 63)


@pytest.mark.parametrize(
    ("elements", "size"), [(4, 16), (-1, None), (1 << 61, None), (1 << 62, None), (10**30, None), ("x", None)]
)
def test_a_size_that_does_not_fit_is_no_size(elements, size):
    taken = {}
    codes = SimpleNamespace(code=lambda _: 0)
    sink = SimpleNamespace(
        collective_names=codes, communicators=codes, collectives=lambda *_, **columns: taken.update(columns)
    )
    zero = np.zeros(1, np.int64)
    arguments = [{"Collective name": "allreduce", "dtype": "Float", "In msg nelems": elements, "Seq": elements}]
    take_collectives(sink, zero, zero, zero, {"device": zero}, arguments)
    assert taken["size"].tolist() == [NULL if size is None else size]
    assert taken["group_size"].tolist() == [NULL]
