"""What varies: targets, bins, ranking, kept and control rows of a dataset, over MPI ranks.

Why it varies stands in `causal`, where the time goes in `efficiency`.

Imports run from left to right: `bin_launches`, `operator_summary`, `stall_summary` > `bins` > `rows`.
"""
