"""What is done with causes once found: attempts at falsification, heterogeneity, baselines, the graph of the context.

The causes themselves are found in `discovery`.

Imports run from left to right: `examine` > `context_nodes`, `falsification` > `baselines`, `context_graph`,
`heterogeneity` > `context_scores`.
"""
