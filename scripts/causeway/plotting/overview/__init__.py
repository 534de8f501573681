"""The overview, one module per section.

Figures stand in `figures`.

Imports run from left to right: `overview` > `effects_in_kernels`, `findings_list`, `inputs`, `time_lost` > `causes`,
`comparisons`, `datasets`, `heat_map`, `late_ranks`, `methods`, `waiting`, `what_if`.
"""
