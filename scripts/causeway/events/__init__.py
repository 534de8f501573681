"""Ground: ordered streams of a dataset's events, read block by block, merged, numbered and joined.

What a row of a table means stands in `core`; statistics of values stand in `numeric`.

Imports run from left to right: `device_events`, `outer_ranges` > `event_blocks`, `few_values` > `distinct_texts`.
"""
