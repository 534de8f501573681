"""Interactive figures by plotly: each takes tables and returns a `plotly.graph_objects.Figure`.

The same figures stand on the interactive pages of a report and in a notebook (`causeway.api`). plotly is imported
inside the functions, so only a step that draws loads it. Static figures stand in `figures`.

Imports run from left to right: `named_figures` > `plots` > `look`.
"""
