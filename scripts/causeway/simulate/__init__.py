"""Traces with planted causes, in the vendors' real formats: what the rest of Causeway is tried and tested on.

`scenarios` says what a run is (kernels, causes, sizes), `schedule` plays it (pure NumPy, in batches of iterations), `counters` draws
the counters of single launches; `nsys_sqlite`, `kineto_json` and `ncu_csv` write what the vendors' tools would have written, and `runs`
puts the files and their `truth.json` into a folder. Equal scenario and seed give equal bytes.
"""
