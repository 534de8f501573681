"""Worker threads inside a rank, and how the work is divided among them.

What they compute stands in `bins`.

Imports run from left to right: `partition`, `workers`.
"""
