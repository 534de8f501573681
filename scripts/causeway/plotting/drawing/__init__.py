"""What all figures and pages are drawn with: theme, charts, markup, labels, citations, the frame of a page.

One figure or page each stands in the other folders.

Imports run from left to right: `charts`, `page` > `theme` > `citations`, `labels` > `drawn`, `markup`.
"""
