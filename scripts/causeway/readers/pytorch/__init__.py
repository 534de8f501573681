"""PyTorch's profiler: Kineto traces of any vendor's devices.

Chrome JSON as such is a container and stands in `containers`.

Imports run from left to right: `kineto` > `collective_arguments`, `event_fields`, `operator_events`,
`synchronisation_events`, `trace_processes`.
"""
