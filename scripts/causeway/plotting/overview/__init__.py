"""The overview, one module per section.

Figures stand in `figures`.

Imports run from left to right: `overview` > `effects_in_kernels`, `findings_list`, `inputs`, `slow_steps`,
`time_lost` > `causes`, `comparisons`, `datasets`, `heat_map`, `idle_reasons`, `late_ranks`, `methods`, `what_if`.
"""
