"""Ground: exact and statistical numerics that several wings share: intervals, moments, slices, resampling, seeds,
compiled loops, MPI.

What a table means stands in `core`, what one wing alone computes in that wing; `mpi` is the only module that imports
mpi4py.

Imports run from left to right: `between_groups`, `block_resampling`, `few_values`, `intervals`, `mpi_program`,
`parquet_concat`, `row_heap`, `slice_statistics` > `moments`, `parts` > `compiled`, `distinct_texts`, `effective_size`,
`mpi`, `process`, `seeds`.
"""
