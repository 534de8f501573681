"""Figures, one module each.

Pages that hold figures stand in `pages` and `overview`.

Imports run from left to right: `device_time`, `parallel_coordinates`, `series` > `bins`,
`causal_graph`, `comparison`, `coordinate_axes`, `efficiency`, `fleet`, `kernel_agreement`, `kernels`, `stragglers`,
`warp_stalls`.
"""
