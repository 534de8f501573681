"""What all figures and pages are drawn with: theme, SVG, markup, labels, citations, the frame of a page.

One figure or page each stands in the other folders.

Imports run from left to right: `interval_bars` > `charts`, `citations`, `page`, `svg` > `kernel_labels`, `markdown`,
`theme` > `graph_layout`, `markup`, `merged_cells`, `target_labels`.
"""
