"""The overview's answer to what would help: what-ifs of all kernels, ranked by what they are worth."""

from collections.abc import Mapping, Sequence

from causeway.plotting.kernels import Kernel, share_text
from causeway.plotting.markup import Markup, tag
from causeway.plotting.names import elided, full_name

SHOWN = 8


def ranked(searches: Sequence[object], kernels: Sequence[Kernel]) -> list[tuple[Mapping, Kernel | None, float]]:
    """Return supported what-ifs that reduce the target, with their kernel and worth, largest worth first; one per kernel and feature.

    The worth is the reduction times the kernel's share of the target: a ranking, not a sum, because causes overlap. The whole dataset's
    what-ifs stand in where no kernel has any.
    """
    known = {kernel.id: kernel for kernel in kernels}
    found = []
    for search in searches:
        kernel = known.get(search.graph["scope"])
        best: dict[str, Mapping] = {}
        for row in search.tables.get("whatif", []):
            if row["verdict"] == "supported" and row["change_percent"] < 0:
                current = best.get(row["feature"])
                if (
                    current is None
                    or row["to"] == "none"
                    or (current["to"] != "none" and row["change_percent"] < current["change_percent"])
                ):
                    best[row["feature"]] = row
        found += [(row, kernel, -row["change_percent"] / 100 * (kernel.share if kernel else 1.0)) for row in best.values()]
    own = [one for one in found if one[1] is not None]
    return sorted(own or found, key=lambda one: (-one[2], one[1].id if one[1] else "", one[0]["feature"]))


def what_would_help(searches: Sequence[object], kernels: Sequence[Kernel]) -> Markup | None:
    """Return the table, or None where nothing that was observed would help."""
    rows = ranked(searches, kernels)[:SHOWN]
    if not rows:
        return None
    body = []
    for row, kernel, worth in rows:
        name = kernel.short if kernel else "Whole dataset"
        setting = [tag("code", elided(row["feature"], 50)), f" {row['from']} → {row['to']}"]
        low, high = -row["change_high"], -row["change_low"]
        cut = f"{-row['change_percent']:.0f} % [{low:.0f}, {high:.0f}]"
        cells = [tag("td", name, class_="name", title=full_name(kernel.name) if kernel else None), tag("td", setting)]
        body.append(tag("tr", cells, tag("td", cut, class_="n"), tag("td", share_text(worth), class_="n")))
    heads = [("kernel", ""), ("if one cause were set", ""), ("its target shrinks by", "n"), ("of all variability", "n")]
    head = tag("thead", tag("tr", [tag("th", words, class_=kind or None) for words, kind in heads]))
    words = "Counterfactuals of the fitted model within what was observed, the other causes as they were, if no unmeasured common cause."
    words += f" Gains of several rows overlap; at most {SHOWN} are shown, ranked by what they are worth."
    return tag(
        "div",
        tag("h3", "What would help"),
        tag("p", words, class_="note"),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
    )
