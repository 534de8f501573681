"""Where the time goes: efficiency trees, idle and overlap, collectives, clocks, stragglers, components of variance.

`sweep` measures states of devices and host threads in one pass over ordered events; `trees` holds the formulas; `measure` puts both
together for a dataset. `collectives`, `alignment` and `stragglers` compare ranks; `variance` and `series` compare cells and datasets.
"""
