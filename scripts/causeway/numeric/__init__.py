"""Ground: exact and statistical numerics that several wings share: intervals, moments, slices, resampling, seeds,
compiled loops, MPI.

What a table means stands in `core`, what one wing alone computes in that wing; `mpi` is the only module that imports
mpi4py.

Imports run from left to right: `block_resampling`, `intervals`, `kept_bits`, `mpi_program`,
`slice_statistics` > `moments`, `parts` > `compiled`, `effective_size`, `mpi` > `numba_code`, `process`, `seeds`.
"""
