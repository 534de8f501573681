"""Files of results: written whole, checked when read; what they were made of; errors of the machine.

What the tables in them hold stands in `schemas`.

Imports run from left to right: `checked_parquet`, `checksums`, `finished_parts`, `research_object` > `listing` >
`json_documents` > `machine_errors`, `whole_files`, `file_state`, `source_names`, `yaml_files`.
"""
