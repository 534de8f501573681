"""Each scope as a causal model that other programs read: its rows as a data frame, its graph as GML, for dowhy.

Imports run from left to right: `identification`, `log_time_estimator` > `scope_model`.
"""
