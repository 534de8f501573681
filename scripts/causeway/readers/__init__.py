"""Readers: one module per layout of export, behind one interface, all writing the same star of tables.

A reader module has two functions:

    probe(path) -> bool                     is this file or folder mine? Looks at a few kilobytes, raises nothing
    read(path, sink, options) -> None       streams the export's events to the sink, in batches, in any order

`detect` names the family of a format, `normalise` picks the reader, runs it and writes `capabilities.json`; `sink` does what all formats
share. This file stays empty: `detect` is imported whenever the workflow is parsed.
"""
