"""Ground: what every part may import: errors, logs, tables with their schemas, features, number formats, queries,
results.

Numeric methods stand in `numeric`, everything that belongs to one stage in its wing.

Imports run from left to right: `event_blocks`, `reduced`, `results` > `logs`, `sheet`, `tables` > `clock`, `codes`,
`errors`, `feature_registry`, `formatting`, `queries`, `schemas` > `vocabulary`.
"""
