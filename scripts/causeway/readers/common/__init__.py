"""What readers of all formats share: column maps, names and the ranks in them, numbers and units, operators, layouts of
inputs, kinds of copies, issues, compressed files, work in the background.

Nothing here knows the sink or a file format.

Imports run from left to right: `copy_kinds`, `operator_sweep` > `numbers`, `operators` > `background`, `column_maps`,
`constants`, `files`, `input_layouts`, `issues`, `known_contents`, `name_ranks`, `options`, `vocabularies` >
`kernel_names`, `packed`.
"""
