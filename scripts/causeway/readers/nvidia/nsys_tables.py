"""The tables of a Nsight Systems export, whatever their container: their processes, and which of them use which
devices.
"""

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.common.column_maps import column_map
from causeway.readers.common.constants import NULL
from causeway.readers.common.options import Options
from causeway.readers.containers.table_source import TableSource
from causeway.readers.nvidia.activity_tables import ActivityTables
from causeway.readers.sink.batches import looked_up, repeated
from causeway.readers.sink.distinct import distinct, distinct_rows
from causeway.readers.sink.sink import Sink

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


class NsysTables(ActivityTables):
    """What `nsys` and `nsys_extras` share on the way from an export's tables to the sink.

    Attributes
    ----------
    several : bool
        Whether launches name their process.
    users : dict of int to dict of int to None
        Codes of the processes seen on each device, in order; as keys, since there may be many.
    """

    def __init__(self, export: TableSource, sink: Sink, options: Options) -> None:
        tables = column_map("nsys")["tables"]
        strings = ("StringIds", "id", "value")
        super().__init__(export, sink, options, tables=tables, strings=strings, text_column="text")
        self.several = "globalPid" in export.tables.get(KERNELS, [])
        self.users: dict[int, dict[int, None]] = {}

    def note_broken(self) -> None:
        """Count the tables that matter and cannot be opened, as issues."""
        for table, reason in self.export.broken.items():
            rest = table.startswith("(")  # of a file of several tables
            if table in self.tables or table == "StringIds" or rest:
                self.sink.issues.add("truncated" if rest else "unreadable_table", 1, f"{table}: {reason}")
                found = (
                    f"the file is cut or damaged {table[1:-1]}"
                    if rest
                    else f"table {table} cannot be opened ({reason})"
                )
                advice = "Export it again from the report file, or copy it again."
                self.failure = self.failure or ExportError(
                    self.options.source, found, "complete files, as `nsys export` writes them", advice
                )

    def _note_lacking(self, table: str, columns: list[str]) -> None:
        self.failure = self.failure or ExportError(
            self.options.source,
            f"table {table} has no column {', '.join(columns)}",
            "the columns that Nsight Systems writes",
            "Export the report again with `nsys export`.",
        )

    def process_key(self, packed: int) -> int:
        """Return the key of a process in a packed globalPid or globalTid: everything above the 24 bits of the thread
        id.
        """
        return packed >> 24 if self.several else 0

    def process(self, batch: dict, column: str, rows: int) -> np.ndarray:
        """Return the process codes of a batch's rows, int64 of shape (rows,), from a column of packed ids."""
        if not self.several or column not in batch:
            return repeated(self.sink.processes.code(0), rows)
        packed, _, inverse = distinct(batch[column])
        return looked_up(
            np.array([self.sink.processes.code(key if key == NULL else key >> 24) for key in packed.tolist()]), inverse
        )

    def note_users(self, process: np.ndarray, batch: dict) -> None:
        """Remember which processes use which devices; one that is not named is device 0, as in the sink."""
        devices = batch.get("device", repeated(0, len(process)))
        first, _ = distinct_rows([devices, process])
        for device, code in sorted(zip(devices[first].tolist(), process[first].tolist(), strict=True)):
            self.users.setdefault(0 if device == NULL else device, {})[code] = None

    def gpus_of_users(self) -> list[tuple[int, int, int]]:
        """Return process, device and GPU, as Nsight Systems numbers it, of the devices that processes use: as the
        export says, else as the machine numbers them, else the same number.
        """
        pids = {code: key & 0xFFFFFF for code, key in enumerate(self.sink.processes.keys) if isinstance(key, int)}
        rows = self.export.rows("TARGET_INFO_CUDA_DEVICE", ["pid", "cudaId", "gpuId"])
        stated = {(pid, device): gpu for pid, device, gpu in rows if isinstance(gpu, int)}
        rows = self.export.rows("TARGET_INFO_GPU", ["id", "cuDevice"])
        numbered = {device: gpu for gpu, device in rows if isinstance(gpu, int) and isinstance(device, int)}
        return [
            (code, device, stated.get((pids.get(code), device), numbered.get(device, device)))
            for device, codes in sorted(self.users.items())
            for code in codes
        ]

    def user_of_gpu(self, gpu: int) -> tuple[int, int]:
        """Return the process and CUDA device of a GPU as Nsight Systems numbers them: as the export says, else the
        device that it numbers so on the machine, else the same number.

        Nsight Systems and CUDA may count the GPUs of a machine in opposite directions. What a process sees may be
        numbered otherwise again (CUDA_VISIBLE_DEVICES), so that the number remains an assumption.
        """
        pids = {key & 0xFFFFFF: code for code, key in enumerate(self.sink.processes.keys) if isinstance(key, int)}
        for known, pid, device in self.export.rows("TARGET_INFO_CUDA_DEVICE", ["gpuId", "pid", "cudaId"]):
            if known == gpu and pid in pids and device in self.users:
                return pids[pid], device
        rows = self.export.rows("TARGET_INFO_GPU", ["id", "cuDevice"])
        numbered = {number: device for number, device in rows if isinstance(device, int) and device >= 0}
        distinct_devices = len(set(numbered.values())) == len(rows)
        device = numbered.get(gpu, gpu) if distinct_devices else gpu
        users = list(self.users.get(device, ())) or [code for codes in self.users.values() for code in codes]
        self.sink.issues.add("metrics_device_assumed", 1, f"GPU {gpu} taken as device {device}")
        return (users[0] if users else self.sink.processes.code(0)), device
