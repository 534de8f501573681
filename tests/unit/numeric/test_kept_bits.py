"""Numbers with few bits are near what they were."""

import numpy as np

from causeway.numeric.kept_bits import with_bits


def test_values_keep_the_bits_that_are_asked_for():
    values = np.array([0.0, 1.0, 0.5, np.nan, 1e-30, 123.456, -3.14159, 1 / 3])
    for bits in (1, 7, 12, 22):
        kept = with_bits(values, bits)
        assert kept[:3].tolist() == [0, 1, 0.5]
        assert np.isnan(kept[3])
        assert np.allclose(kept[4:], values[4:], rtol=2.0 ** -(bits + 1) + 1e-7, atol=0)
    assert len(np.unique(with_bits(np.linspace(1, 2, 10_000), 7))) == 2**7 + 1
