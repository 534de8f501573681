"""Mutants of exact numerics: sums, variances, intervals, seeds."""

from lab.mutants.mutant import Mutant

NUMERIC = "scripts/causeway/numeric/"


def _of(file: str, old: str, new: str, tests: tuple[str, ...], chosen: str = "") -> Mutant:
    return Mutant(NUMERIC + file, old, new, tests, chosen)


MUTANTS = {
    "variance divides by n": _of(
        "moments.py", "n * (n - 1), 2 * self.unit)", "n * n, 2 * self.unit)", ("numeric/test_moments.py",)
    ),
    "carries are lost": _of(
        "moments.py",
        "self.table[:, column + 1] += self.table[:, column] >> LIMB_BITS",
        "pass",
        ("numeric/test_moments.py",),
    ),
    "the smallest value of ranks is the largest": _of(
        "moments.py",
        "self.low = np.minimum(self.low, other.low)",
        "self.low = np.maximum(self.low, other.low)",
        ("numeric/test_moments.py",),
    ),
    "not a number is a number": _of(
        "moments.py",
        "bad = np.flatnonzero(~np.isfinite(value))",
        "bad = np.flatnonzero(np.isinf(value))",
        ("numeric/test_moments.py",),
    ),
    "covered time counts overlaps twice": _of(
        "intervals.py",
        "    start, end = _as_set(intervals)\n    return int(",
        "    start, end = intervals\n    return int(",
        ("numeric/test_intervals.py",),
    ),
    "an interval that ends before it starts is taken": _of(
        "intervals.py", "    if wrong >= 0:", "    if False:", ("numeric/test_intervals.py",)
    ),
    "a seed does not depend on what it is for": _of(
        "seeds.py",
        '_digest("\\x1f", "big", (seed, *parts)) >> 1',
        '_digest("\\x1f", "big", (seed,)) >> 1',
        ("numeric/test_seeds.py",),
    ),
    "names of seeds run into one another": _of(
        "seeds.py",
        'return _digest("\\x1f", "big", (seed, *parts)) >> 1',
        'return _digest("", "big", (seed, *parts)) >> 1',
        ("numeric/test_seeds.py",),
    ),
}
