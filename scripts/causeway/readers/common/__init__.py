"""What readers of all formats share: column maps, names, numbers and units, kinds of copies, issues, work in the
background.

Nothing here knows the sink or a file format.

Imports run from left to right: `copy_kinds` > `numbers` > `background`, `column_maps`, `constants`, `files`, `issues`,
`kernel_names`, `options`, `vocabularies`.
"""
