"""Sections on why launches differ: copies linked to them, causes, their effects in each kernel, what a change would do.

Imports run from left to right: `effects_in_kernels`, `linked_copies`, `what_if` > `causes`.
"""
