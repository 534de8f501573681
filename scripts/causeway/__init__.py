"""Causeway: from GPU profiler exports to the causes of runtime variability.

Two ground floors, `core` and `numeric`, and a wing for each stage. A wing imports the ground, never another wing: what
one makes and another needs travels as a table on disk.

Imports run from left to right: `readers`, `inputs`, `variability`, `efficiency`, `waiting`, `causal`, `levels`,
`comparison`, `findings`, `plotting`, `fleet`, `scaling`, `simulate`, `validation` > `numeric` > `core`.
"""

GROUND = ("core", "numeric")
"""The ground floors, which every wing may import; the rules and the tests take them from here."""
