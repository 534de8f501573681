"""The page that explores the levels, and the tiles that it loads; its HTML, CSS and JavaScript lie in `assets`.

The statistics are computed in `pyramid`.

Imports run from left to right: `explorer` > `tiles` > `path_time`, `query`.
"""
