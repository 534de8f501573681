"""How much a column of a Parquet file may unpack to, from what its footer declares."""

import pyarrow.parquet as pq

from causeway.core.errors import ExportError
from causeway.readers.common.kernel_names import clean_text

LARGEST_CHUNK_BYTES = 256 << 20
"""Unpacked bytes of one column of a Parquet file's row group that are read whatever they were packed to."""
MOST_TIMES = 200
"""Beyond that, how often as large as in the file a column may be (the bound of other packed exports)."""


def check_sizes(source: str, metadata: pq.FileMetaData) -> None:
    """Refuse a file of which a few bytes become a large column: what a row group declares is allocated at once.

    Parameters
    ----------
    source : str
        How the sheet names the export, for the message.
    metadata : pyarrow.parquet.FileMetaData
        The file's footer; no page is read.

    Raises
    ------
    ExportError
        If a column of a row group unpacks to more than `LARGEST_CHUNK_BYTES` and `MOST_TIMES` its size.
    """
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for column in range(row_group.num_columns):
            chunk = row_group.column(column)
            size = chunk.total_uncompressed_size
            if size > max(LARGEST_CHUNK_BYTES, MOST_TIMES * chunk.total_compressed_size):
                problem = f"column {clean_text(chunk.path_in_schema)[:80]} unpacks to {size:,} bytes"
                most = f"at most {MOST_TIMES} times its {chunk.total_compressed_size:,} bytes"
                raise ExportError(source, problem, most, "If it is an export, write it again in smaller row groups.")
