"""The command `causeway`: from files to a report in one command, and questions to the results.

It stands on the top floor beside the entry scripts. It writes a sheet and a configuration, calls Snakemake as a user
would, and shows what comes of it; nothing is analysed here.

Imports run from left to right: `__main__`, `exports_without_sheet` > `analysis_folder`, `check`,
`configuration_check`, `first_screen_lines`, `gate_files`, `query_output`, `refused_exports`, `run_workflow` >
`table_targets` > `exports_found`, `progress` > `output`.
"""
