"""What a kernel's name says of the kernel, and what of its build."""
