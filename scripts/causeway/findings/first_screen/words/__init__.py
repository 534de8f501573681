"""Words of the first screen: one template per kind of fact, rendered once.

Imports run from left to right: `work_words` > `run_words`; `recording_words` stands alone.
"""
