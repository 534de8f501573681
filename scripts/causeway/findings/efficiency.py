"""Findings of the efficiency trees: what device time is lost to, and why devices are idle.

Losses below the share `NOTICEABLE` of the device time are no findings of their own; the waterfall shows them.
"""

from collections.abc import Mapping

from causeway.findings import suggestions
from causeway.findings.record import NOTICEABLE, evidence, finding, link_to
from causeway.queries import in_document, value_at, within

SAME = 0.1
"""Two counts of one loss that differ by no more than this share say the same."""
SMALL_SHARE = 0.25
"""Small kernels are a finding where at least this share of the launches is shorter than the limit."""
LOSSES = {
    "orchestration": "orchestration: nothing runs on the busiest device",
    "load_imbalance": "load imbalance: the other devices compute less than the busiest one",
    "communication": "communication outside compute",
    "transfers": "copies and sets that nothing overlaps",
}
IDLE = {"host": "waits for the host", "kernel_wait": "lies between two kernels", "other": "has other reasons"}
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


def seconds(ns: int) -> str:
    """Return a time with three significant digits and the unit that suits it."""
    size, name = next(((size, name) for size, name in UNITS if abs(ns) >= size), UNITS[-1])
    value = ns / size
    return f"{value:.{max(0, 2 - len(str(int(abs(value)))) + 1)}f} {name}"


def of_efficiency(document: Mapping) -> list[dict]:
    """Return the findings of one dataset's `efficiency.json`: losses, idle time, exposed copies, small kernels, shared GPUs."""
    total = gpu_time_ns(document)
    if not total:
        return []
    return [*_losses(document, total), *_idle(document, total), *_exposed(document, total), *_small(document), *_shared(document)]


def gpu_time_ns(document: Mapping) -> int:
    """Return the dataset's GPU time: elapsed time x devices, ns; 0 if nothing was measured."""
    return 0 if document["why"] else document["elapsed_ns"] * document["device"]["n_devices"]


def _made(document: Mapping, what: str, value: object, query: str, unit: str, **facts: object) -> dict:
    """Return a finding of the whole dataset, counted from the document."""
    dataset = document["dataset"]
    return finding(
        dataset,
        None,
        "dataset",
        "efficiency",
        what,
        effect={"value": value, "low": None, "high": None, "unit": unit},
        verdict="supported",
        evidence=evidence(_path(document), query, value),
        link=link_to(dataset, "efficiency"),
        **facts,
    )


def _path(document: Mapping) -> str:
    return f"{document['dataset']}/efficiency.json"


def _query(document: Mapping, expression: str) -> str:
    return within(_path(document), expression)


def _losses(document: Mapping, total: int) -> list[dict]:
    found, devices = [], document["device"]["n_devices"]
    whole = f"{value_at('elapsed_ns', kind='integer')} * {value_at('device', 'n_devices', kind='integer')}"
    for part, words in LOSSES.items():
        lost = document["waterfall_ns"][part]
        if lost < NOTICEABLE * total:
            continue
        value = 100 * lost / total
        share = _query(document, f"100 * {value_at('waterfall_ns', part, kind='integer')} / ({whole})")
        sentence = f"{value:.0f} % of the GPU time ({seconds(lost)} of {seconds(total)} on {devices} device{'s' * (devices > 1)}) "
        found.append(
            _made(document, part, value, share, "percent of the GPU time", sentence=f"{sentence}is lost to {words}.",
                  recoverable_ns=lost, recoverable_query=in_document(_path(document), "waterfall_ns", part, kind="integer"),
                  suggestion=suggestions.LOSSES[part])
        )  # fmt: skip
    return found


def _over_devices(document: Mapping, key: str) -> str:
    """Return the expression of a sum over the breakdown of all devices."""
    return f"list_sum(json_extract(content, '$.breakdown.*.{key}')::BIGINT[])::BIGINT"


def _idle(document: Mapping, total: int) -> list[dict]:
    """Return the main reason why devices are idle, where they are."""
    sums = {cause: sum(one[f"idle_{cause}_ns"] for one in document["breakdown"].values()) for cause in IDLE}
    idle = sum(sums.values())
    if idle < NOTICEABLE * total or not idle:
        return []
    main = max(IDLE, key=lambda cause: sums[cause])
    parts = {cause: _over_devices(document, f"idle_{cause}_ns") for cause in IDLE}
    query = _query(document, f"100 * {parts[main]} / ({' + '.join(parts.values())})")
    value = 100 * sums[main] / idle
    sentence = f"Devices are idle for {seconds(idle)} of GPU time; {value:.0f} % of it {IDLE[main]}."
    return [_made(document, "idle", value, query, "percent of the idle time", sentence=sentence, suggestion=suggestions.IDLE[main])]


def _exposed(document: Mapping, total: int) -> list[dict]:
    """Return how long copies run alone, over all devices, unless that is the loss by copies over again."""
    alone, lost = sum(one["exposed_memory_ns"] for one in document["breakdown"].values()), document["waterfall_ns"]["transfers"]
    if alone < NOTICEABLE * total or (lost >= NOTICEABLE * total and abs(alone - lost) <= SAME * alone):
        return []
    sentence = f"Copies and sets run alone, without a kernel beside them, for {seconds(alone)} of GPU time ({100 * alone / total:.0f} %)."
    query = _query(document, _over_devices(document, "exposed_memory_ns"))
    return [_made(document, "exposed_copies", alone, query, "ns", sentence=sentence, suggestion=suggestions.LOSSES["transfers"])]


def _small(document: Mapping) -> list[dict]:
    """Return that most launches are short, where they are."""
    path = document["launch_path"]
    if (path["small_share"] or 0) < SMALL_SHARE:
        return []
    value = 100 * path["small_share"]
    sentence = f"{value:.0f} % of {path['launches']:,} launches are shorter than {seconds(path['small_kernel_ns'])}"
    sentence += f" and have {100 * path['small_time_share']:.0f} % of the kernel time." if path["small_time_share"] is not None else "."
    query = _query(document, f"100 * {value_at('launch_path', 'small_share')}")
    return [
        _made(document, "small_kernels", value, query, "percent of the launches", sentence=sentence, n=path["launches"],
              suggestion=suggestions.SMALL)
    ]  # fmt: skip


def _shared(document: Mapping) -> list[dict]:
    """Return that several ranks drive one GPU, where the exports say so."""
    gpus = document.get("shared", [])
    if not gpus:
        return []
    value = sum(gpu["at_once_ns"] for gpu in gpus)
    one = len(gpus) == 1
    sentence = f"{len(gpus)} GPU{' is' if one else 's are'} shared by several ranks, whose kernels run at once for {seconds(value)} in all."
    query = _query(document, "list_sum(json_extract(content, '$.shared[*].at_once_ns')::BIGINT[])::BIGINT")
    return [_made(document, "shared_devices", value, query, "ns", sentence=sentence, suggestion=suggestions.SHARED)]
