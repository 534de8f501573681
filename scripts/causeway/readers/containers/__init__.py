"""Files as tables or records, whatever they hold: SQLite, Arrow, Parquet, CSV, JSON, damaged ones too.

What the tables of a vendor mean stands in the vendors' folders.

Imports run from left to right: `arrow_export`, `nested_json`, `sqlite_database` > `arrow_tables`, `chrome_json`,
`csv_and_parquet`, `csv_batches`, `perfetto_packets`, `sqlite_pages`, `table_source` > `csv_lines`, `parquet_sizes`,
 `perfetto_head`, `sqlite_names`.
"""
