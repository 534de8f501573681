"""What is done with causes once found: attempts at falsification, the graph of the context.

The causes themselves are found in `discovery`.

Imports run from left to right: `examine` > `context_graph`, `falsification`.
"""
