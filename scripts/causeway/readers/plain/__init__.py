"""Plain tables, one row per launch.

CSV and Parquet as such are containers and stand in `containers`.

Imports run from left to right: `table`.
"""
