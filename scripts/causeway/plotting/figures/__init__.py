"""Static figures, drawn by matplotlib, seaborn and graphviz.

Pages that hold figures stand in `pages` and `overview`.

Imports run from left to right: `bins`, `causal_graph`, `comparison`, `coordinates`, `device_time`, `efficiency`,
`kernel_agreement`, `kernels`, `steps`, `stragglers`.
"""
