"""The graph of dependencies: device work and host calls of a dataset, and what each had to wait for.

What lies on the critical path, and what a change would be worth, stands in `path` and `replay`.

Imports run from left to right: `linked_graph` > `link_ranks`, `read_graph` > `export_stream`, `links` >
`graph_builder` > `device_work`, `explicit_waits`, `staying` > `host_calls` > `blocking_copies` >
`distinct_rows`, `nodes` > `scratch`.
"""
