"""Ground: what every part may import: errors, logs, tables with their schemas, features, number formats, queries,
results.

Numeric methods stand in `numeric`, everything that belongs to one stage in its wing.

Imports run from left to right: `clock`, `feature_registry`, `finding_kinds`, `logs`, `names`, `queries`, `reduced`,
`results`, `sheet` > `formatting`, `tables` > `codes`, `files`, `schemas` > `errors`, `installation`, `vocabulary`.
"""
