"""The graph of dependencies: device work and host calls of a dataset, and what each had to wait for.

What lies on the critical path, and what a change would be worth, stands in `path` and `replay`.

Imports run from left to right: `linked_graph` > `read_graph` > `device_work`, `host_calls` > `links` >
`distinct_rows`, `nodes`.
"""
