"""Files of results: written whole, checked when read; and which errors are the machine's.

What the tables in them hold stands in `schemas`.

Imports run from left to right: `checked_parquet`, `checksums` > `machine_errors`, `whole_files`.
"""
