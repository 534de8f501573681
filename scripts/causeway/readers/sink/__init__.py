"""The sink: takes events from any reader, orders and joins them in bounded memory, and writes the star schema.

Nothing here knows a vendor or a container of files.

Imports run from left to right: `counter_table`, `star_writer` > `sink` > `launch_operators`, `processes`,
`stream_order` > `records` > `profiler_overhead` > `table_columns` > `distinct`, `external_sort`, `joins` > `batches`,
`compiled_loops`, `event_times`.
"""
