"""Readers: one module per layout of export, behind one interface, all writing the same star schema.

A reader module has two functions: `probe(path) -> bool` looks at a few kilobytes and raises nothing; `read(path, sink,
options)` streams the export's events to the sink, in batches, in any order. What is computed from the tables stands in
the other wings. This file imports nothing: `detect` runs whenever the workflow is parsed.

Imports run from left to right: `batch` > `normalise` > `capabilities`, `measured_kind`,
`printed_reports`, `report_conversion`, `step_coverage`, `unsupported` > `archives` > `unpacking` > `recorded_span`,
`report_kinds` > `nvidia`, `amd`, `pytorch`, `plain` > `detect` > `containers`, `registry` > `sink` > `common`.
"""
