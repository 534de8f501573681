"""Ground: what every part may import: errors, logs, tables with their schemas, features, number formats, queries,
results.

Numeric methods stand in `numeric`, everything that belongs to one stage in its wing.

Imports run from left to right: `reduced`, `results`, `telemetry_sheet` > `feature_registry`, `logs`, `sheet`,
`tables` > `clock`, `codes`, `files`, `finding_kinds`, `names`, `queries`, `schemas` > `formatting` > `errors`,
`installation`, `vocabulary`.
"""
