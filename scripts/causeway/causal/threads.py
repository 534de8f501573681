"""One thread for linear algebra and trees: our matrices are small, and the order of sums must not depend on the machine."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread. Libraries must be loaded to be limited, so the trees are imported here."""
    import sklearn.ensemble  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
