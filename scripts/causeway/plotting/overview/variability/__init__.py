"""Sections on why launches differ: causes, their effects in each kernel, what a change would do.

Imports run from left to right: `effects_in_kernels`, `what_if` > `causes`.
"""
