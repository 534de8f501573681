"""How often the causal analysis errs: a generator of tables with known causes that does not keep to its assumptions,
distractors, baselines, and scores.

The analysis itself stands in `causeway.causal`; the two meet in `features.parquet` alone.

Imports run from left to right: `baselines`, `result_page` > `cases`, `features_file`, `scores`, `selection`,
`table_seeds`, `time_scores` > `time_truth` > `further_generators` > `generator` > `distractors`, `effects` >
`autocorrelated`, `measurement`, `truth`.
"""
