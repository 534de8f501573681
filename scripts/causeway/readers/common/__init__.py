"""What readers of all formats share: column maps, names, numbers and units, operators, kinds of copies, issues,
compressed files, work in the background.

Nothing here knows the sink or a file format.

Imports run from left to right: `copy_kinds`, `operator_sweep` > `numbers`, `operators` > `background`, `column_maps`,
`constants`, `files`, `issues`, `kernel_names`, `options`, `vocabularies` > `packed`.
"""
