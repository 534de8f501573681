"""Sections on why launches differ: copies linked to them, what their warps wait for, causes, their effects in each
kernel, what a change would do.

Imports run from left to right: `effects_in_kernels`, `linked_copies`, `stalled_warps`, `what_if` > `causes`.
"""
