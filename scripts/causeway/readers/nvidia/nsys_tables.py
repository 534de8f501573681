"""The tables of a Nsight Systems export, whatever their container: their processes, and which of them use which
devices.
"""

import re
from collections.abc import Mapping

import numpy as np

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import NEVER, NULL
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.options import Options
from causeway.readers.containers.table_source import Batch, TableSource
from causeway.readers.nvidia.activity_tables import ActivityTables
from causeway.readers.sink.batches import repeated
from causeway.readers.sink.distinct import distinct_keys, mapped
from causeway.readers.sink.sink import Sink

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
VERSIONS = {"schema": "EXPORT_SCHEMA_VERSION", "nsys": "EXPORT_PRODUCT_VERSION"}
"""Facts of an export's versions, and their names in its tables of metadata; nothing else is taken from these."""
_FORM = re.compile(r"(\w+?)_V(\d+)")
_LIKE_EVENTS = re.compile(r"ACTIVITY|NVTX|RUNTIME|KERNEL|MEMCPY|MEMSET|CUPTI")
_NO_EVENTS = re.compile(r"ENUM_|TARGET_INFO_")
MOST_NAMED = 5
"""Tables that an issue or a refusal names."""


def with_newer_forms(tables: Mapping[str, dict], export: TableSource) -> dict[str, dict]:
    """Return the known tables, and those of the export that are newer forms of them, by their names: `<TABLE>_V<n>`
    with the columns that the known one needs, where the export has no rows in that one.

    Of several forms the newest is taken: a row may stand in each.
    """
    forms: dict[str, tuple[int, str]] = {}
    for name in export.tables:
        match = _FORM.fullmatch(name)
        entry = tables.get(match[1]) if match else None
        if match is None or entry is None or name in tables or export.rows(match[1], list(entry["columns"])[:1], 1):
            continue
        if set(entry.get("required", entry["columns"])) <= set(export.tables[name]):
            forms[match[1]] = max(forms.get(match[1], (0, "")), (int(match[2][:9]), name))
    return {**tables, **{name: {**tables[base], "form_of": base} for base, (_, name) in forms.items()}}


def with_names_as_text(tables: dict[str, dict], export: TableSource) -> dict[str, dict]:
    """Return the tables, of kernels with the column of names as text where it holds no numbers of strings, as programs
    write that make such a database themselves.
    """
    columns = tables[KERNELS]["columns"]
    names = [raw for raw, ours in columns.items() if ours in ("name", "short_name")]
    first = export.rows(KERNELS, names, 1)
    text = [raw for raw, name in zip(names, *first, strict=True) if not str(name or 0).isdecimal()] if first else []
    if not text or (text[0] != names[0] and isinstance(first[0][0], int)):
        return tables
    kept = {raw: ours for raw, ours in columns.items() if raw not in names}
    return {**tables, KERNELS: {**tables[KERNELS], "columns": {**kept, text[0]: "text"}}}


class NsysTables(ActivityTables):
    """What `nsys` and `nsys_extras` share on the way from an export's tables to the sink.

    Attributes
    ----------
    schema : str or None
        The version of its layout, as it says itself.
    unknown : list of str
        Tables with rows that look like work of the GPU, calls or NVTX, and are not known.
    several : bool
        Whether launches name their process.
    users : dict of int to dict of int to None
        Codes of the processes seen on each device, in order; as keys, since there may be many.
    """

    def __init__(self, export: TableSource, sink: Sink, options: Options) -> None:
        rules = column_map("nsys")
        tables = with_names_as_text(with_newer_forms(rules["tables"], export), export)
        strings = ("StringIds", "id", "value")
        super().__init__(export, sink, options, tables=tables, strings=strings, text_column="text")
        of_launches = (name for name in export.tables if tables.get(name, {}).get("gives") == "launches")
        self.several = any("globalPid" in export.tables[name] for name in of_launches)
        self.users: dict[int, dict[int, None]] = {}
        facts: dict = {}
        for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
            facts |= {key: value for key, value in export.rows(table, ["name", "value"]) if key in VERSIONS.values()}
        texts = {word: clean_text(str(facts.get(key) or ""))[:40] for word, key in VERSIONS.items()}
        self.versions = {word: text for word, text in texts.items() if text}
        self.schema = self.versions.get("schema")
        self._newest = rules["newest_schema"]
        self.unknown = [*self._unknown_tables(rules["not_read"]), *export.unknown]

    @property
    def is_newer(self) -> bool:
        """Whether the export's schema is newer than any that is known."""
        numbers = [re.match(r"(\d{1,4})\.(\d{1,4})", version or "") for version in (self.schema, self._newest)]
        ours, newest = (number and tuple(map(int, number.groups())) for number in numbers)
        return ours is not None and newest is not None and ours > newest

    @staticmethod
    def threads(batch: Batch, column: str = "global_thread") -> np.ndarray:
        """Return the system's number of each row's thread: the lower 24 bits of Nsight Systems' own.

        Parameters
        ----------
        batch : Batch
        column : str

        Returns
        -------
        ndarray of int64, shape (n,)
            `NULL` where absent.
        """
        return np.where(batch[column] == NULL, NULL, batch[column] & 0xFFFFFF)

    def forms_of(self, table: str) -> list[str]:
        """Return the export's tables that are a known one, or a newer form of it."""
        return [name for name in self.export.tables if table in (name, self.tables.get(name, {}).get("form_of"))]

    def _unknown_tables(self, not_read: list[str]) -> list[str]:
        passed = {*self.tables, *not_read}
        return [
            name
            for name in self.export.tables
            if name not in passed
            and _LIKE_EVENTS.search(name.upper())
            and not _NO_EVENTS.match(name.upper())
            and self.export.estimated_rows(name)
        ]

    def unknown_in_words(self) -> str:
        """Return which tables are not known, and that the schema is newer, where it is; empty where all is known."""
        names = [clean_text(name)[:80] for name in self.unknown[:MOST_NAMED]]
        more = len(self.unknown) - len(names)
        parts = [f"schema {self.schema} is newer than {self._newest}"] if self.is_newer else []
        if names:
            parts.append(f"not known: {', '.join(names)}{f' and {more} more' if more else ''}")
        return "; ".join(parts)

    def note_layout(self) -> None:
        """Count as issues a schema that is newer than the known ones, and tables that are not known."""
        forms = [
            f"{name} read as {entry['form_of']}"
            for name, entry in self.tables.items()
            if "form_of" in entry and name in self.export.tables
        ]
        if self.is_newer or forms:
            version = f"schema {self.schema or 'unknown'}, known up to {self._newest}"
            self.sink.issues.add("newer_schema", 1, "; ".join([version, *forms[:MOST_NAMED]]))
        self.sink.issues.add("unknown_data", len(self.unknown), self.unknown_in_words())

    def note_broken(self) -> None:
        """Count the tables that matter and cannot be opened, as issues."""
        for table, reason in self.export.broken.items():
            rest = table.startswith("(")  # of a file of several tables
            if table in self.tables or table == "StringIds" or rest:
                self.sink.issues.add("truncated" if rest else "unreadable_table", 1, f"{table}: {reason}")
                problem = (
                    f"the file is cut or damaged {table[1:-1]}"
                    if rest
                    else f"table {table} cannot be opened ({reason})"
                )
                advice = "Export it again from the report file, or copy it again."
                self.failure = self.failure or ExportError(
                    self.options.source, problem, "complete files, as `nsys export` writes them", advice
                )

    def _note_lacking(self, table: str, columns: list[str]) -> None:
        self.failure = self.failure or ExportError(
            self.options.source,
            f"table {table} has no column {', '.join(columns)}",
            "the columns that Nsight Systems writes",
            "Export the report again with `nsys export`.",
        )

    @staticmethod
    def ends(batch: Batch) -> np.ndarray:
        """Return the ends of calls or ranges, int64 of shape (n,): one that still ran when the recording ended has
        none.
        """
        return np.where(batch["end_ns"] == NULL, NEVER, batch["end_ns"])

    def process_key(self, packed: int) -> int:
        """Return the key of a process in a packed globalPid or globalTid: everything above the 24 bits of the thread
        id.
        """
        return packed >> 24 if self.several else 0

    def process(self, batch: Batch, column: str) -> np.ndarray:
        """Return the process codes of a batch's rows, int64 of shape (rows,), from a column of packed ids."""
        if not self.several or column not in batch:
            return repeated(self.sink.processes.code(0), batch.rows)
        return mapped(batch[column], lambda key: self.sink.processes.code(key if key == NULL else key >> 24))

    def note_users(self, process: np.ndarray, batch: Batch) -> None:
        """Remember which processes use which devices; one that is not named is device 0, as in the sink."""
        devices = batch.get("device", repeated(0, len(process)))
        for device, code in sorted(distinct_keys([devices, process])[0]):
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
        for gpu_id, pid, device in self.export.rows("TARGET_INFO_CUDA_DEVICE", ["gpuId", "pid", "cudaId"]):
            if gpu_id == gpu and pid in pids and device in self.users:
                return pids[pid], device
        rows = self.export.rows("TARGET_INFO_GPU", ["id", "cuDevice"])
        numbered = {number: device for number, device in rows if isinstance(device, int) and device >= 0}
        distinct_devices = len(set(numbered.values())) == len(rows)
        device = numbered.get(gpu, gpu) if distinct_devices else gpu
        users = list(self.users.get(device, ())) or [code for codes in self.users.values() for code in codes]
        self.sink.issues.add("metrics_device_assumed", 1, f"GPU {gpu} taken as device {device}")
        return (users[0] if users else self.sink.processes.code(0)), device
