"""Each scope as a causal model that other programs read: its rows as a data frame, its graph as GML, for dowhy.

Imports run from left to right: `scope_model`.
"""
