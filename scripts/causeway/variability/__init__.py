"""Configurations, transfer links, bins, ranking, kept and control rows: the numeric core of Causeway.

The way of the data: `sources` streams an export's rows, `configurations` numbers what was launched, `links` ties transfers to launches,
`targets` turns rows into what varies, `bins` takes statistics of slices of time, `ranking` chooses bins, `kept` writes their launches,
`summaries` describes kernels and configurations, and `program` runs these steps over MPI ranks.
"""
