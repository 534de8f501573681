"""What readers of all formats share: names and the ranks in them, numbers and units, operators, layouts of
inputs, kinds of copies, issues, compressed files, work in the background.

Nothing here knows the sink or a file format.

Imports run from left to right: `copy_kinds`, `operator_sweep` > `numbers`, `operators` > `background`, `constants`,
`files`, `input_layouts`, `issues`, `known_contents`, `name_ranks`, `options`, `vocabularies` > `kernel_names`,
`packed`.
"""
