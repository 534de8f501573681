"""PyTorch's profiler: Kineto traces of any vendor's devices. And JAX's traces, which are Chrome JSON, too.

Chrome JSON as such is a container and stands in `containers`.

Imports run from left to right: `jax_trace` > `kineto` > `call_sizes`, `range_counters`, `refusals` > `foreign_events` >
`collective_arguments`, `event_fields`, `operator_events`, `synchronisation_events`, `trace_processes`,
`transfer_names`.
"""
