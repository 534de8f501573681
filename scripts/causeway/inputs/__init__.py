"""The exports of a dataset before anything is computed from them: their quality, and the clocks of their sessions.

Readers of formats stand in `readers`, clocks aligned by collectives in `efficiency`.

Imports run from left to right: `quality` > `known_ranks`, `recorded_time`, `session_clocks`.
"""
