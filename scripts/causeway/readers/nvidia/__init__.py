"""NVIDIA's tools: Nsight Systems, Nsight Compute, nvprof, CSV of CUPTI activity.

PyTorch's traces of CUPTI activity stand in `pytorch`.

Imports run from left to right: `nsys_columnar`, `nsys_jsonlines` > `nsys` > `cupti_csv`, `ncu_wide`, `nsys_extras`,
`synchronisations` > `activity_processes`, `ncu_long`, `nsys_recipe`, `nsys_tables`, `nvprof` > `activity_columns`,
`activity_kinds`, `activity_tables`.
"""
