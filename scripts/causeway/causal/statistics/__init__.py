"""Statistics that know nothing of launches: bases of functions, clusters, ridge regression, multiple testing,
sensitivity, shrinkage, weights of draws.

What other wings need as well stands in `numeric`.

Imports run from left to right: `basis`, `ridge`.
"""
