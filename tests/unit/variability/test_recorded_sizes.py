"""Kernels of which each launch has another grid, of programs on an H200 whose sizes were drawn at random
(lab/experiments/library_programs.py).
"""
