"""The graph of dependencies: device work and host calls of a dataset, and what each had to wait for.

What lies on the critical path, and what a change would be worth, stands in `path` and `replay`.

Imports run from left to right: `linked_graph` > `export_stream`, `link_ranks` > `graph_builder`, `links` >
`device_work`, `distinct_rows`, `staying` > `blocking_copies`, `host_calls` > `nodes` > `scratch`.
"""
