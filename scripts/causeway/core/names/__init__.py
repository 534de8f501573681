"""Names of kernels: what in them is the kernel's, and what its build's; what is known of columns by their names.

What stays of a name from one GPU to the next stands in `comparison`.

Imports run from left to right: `build_numbers`, `kernel_words`, `prior_knowledge`, `work_classes`.
"""
