import numpy as np
import pytest

from causeway.events.row_heap import drop, rise, with_room


@pytest.mark.parametrize("seed", range(5))
def test_rows_leave_in_order_however_they_came(seed):
    rng = np.random.default_rng(seed)
    heap = np.empty((0, 2), np.int64)
    held = 0
    inside = []
    for value in rng.integers(0, 50, 200).tolist():
        heap = with_room(heap, held, 1)
        heap[held] = value, 1000 - value
        rise(heap, held)
        held += 1
        inside.append(value)
        while held and rng.random() < 0.4:
            assert heap[0].tolist() == [min(inside), 1000 - min(inside)]
            inside.remove(min(inside))
            drop(heap, held)
            held -= 1
    assert sorted(heap[:held, 0].tolist()) == sorted(inside)
