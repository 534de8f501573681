"""Sections on why launches differ: what varies with its causes, what warps wait for, what a change would do.

Imports run from left to right: `stalled_warps`, `what_if`, `what_varies`.
"""
