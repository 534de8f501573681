"""The command `causeway`: `run`, `check`, `compare`, `gate`, `query`, `verify` and `windows`.

Exit codes: 0 done; 1 the gate is closed, a checked export cannot be read, or a result is not as it was recorded; 2 a
wrong argument, runs that could not be compared or an analysis that failed, with a sentence that says why, or a fault of
this program; 3 of a checked export only a part can be read; 130 interrupted.
"""

import argparse
import sys
import tempfile
import traceback
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from causeway.command_line.analysis_folder import (
    alone_in,
    check_folder,
    datasets_of_others,
    existing_configuration,
    settings_of,
    write_analysis,
)
from causeway.command_line.configuration_check import check_settings, limits_in_words, merged
from causeway.command_line.exports_found import FoundExport, search_exports
from causeway.command_line.first_screen_lines import first_screen_lines
from causeway.command_line.gate_files import VERDICTS, GateFiles, sets_limit, withdraw_verdict
from causeway.command_line.output import answer, remark
from causeway.command_line.progress import NoStepError
from causeway.command_line.refused_exports import RefusedExports
from causeway.command_line.run_workflow import INTERRUPTED, run_workflow, snakemake_command
from causeway.command_line.table_targets import table_targets
from causeway.core.errors import CausewayError
from causeway.core.files.checksums import RECORD, differences, in_words, left_over_in_words
from causeway.core.files.json_documents import read_json
from causeway.core.files.listing import LISTING, read_listing
from causeway.core.files.machine_errors import fault_behind, sentence
from causeway.core.formatting import counted
from causeway.core.installation import VERSION, end_without_collection
from causeway.core.vocabulary import COMPARED, INCONCLUSIVE, NO_LIMIT
from causeway.readers.common.kernel_names import clean_text

FOLDER = Path("causeway-analysis")
"""The folder of an analysis where none is named."""
IN_PART = 3
"""Exit code of `check` where an export can be read in part only: neither all of it, nor nothing."""
EXAMPLES = {
    "run": "causeway run trace.json.gz --out my-analysis",
    "check": "causeway check trace.json.gz",
    "compare": "causeway compare before.sqlite after.sqlite",
    "gate": "causeway gate before.sqlite after.sqlite --limit max_slowdown_percent=5",
    "query": "causeway query \"SELECT short_name, launches FROM 'my_run/kernel_variability/kernels.parquet'\"",
    "verify": "causeway verify my-analysis",
    "windows": "causeway windows my_run finding_3",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="causeway",
        description="Where a GPU run loses time, what varies, and why.",
        epilog="First `causeway check FILE`, then `causeway run FILE`; `causeway COMMAND --help` shows the arguments.",
    )
    parser.add_argument("--version", action="version", version=f"causeway {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, action: Callable[[argparse.Namespace], int], words: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=words,
            description=words,
            epilog=f"example: {EXAMPLES[name]}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(action=action)
        return command

    def works_in_a_folder(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--out", type=Path, default=FOLDER, metavar="DIR", help=f"folder of the analysis (default: {FOLDER})"
        )
        command.add_argument(
            "--cores", type=_cores, metavar="N", help="processes at a time (default: all, or as the profile says)"
        )
        command.add_argument("--profile", metavar="NAME", help="a profile of Snakemake, for example slurm")

    def runs(command: argparse.ArgumentParser) -> None:
        works_in_a_folder(command)
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="a choice of the configuration, for example bins.width_us=1000; config/README.md lists the keys",
        )
        command.add_argument("--open", action="store_true", help="open the page in a browser")

    both = "two runs: files or folders, the earlier one first"
    of_an_analysis = f"folder of the analysis (default: {FOLDER})"
    one_or_more = "an export, or a folder of them; NAME=PATH makes all of them ranks of one run NAME"
    run = add("run", _run, "Analyse exports and write the overview and the report.")
    run.add_argument("exports", nargs="*", metavar="FILE_OR_FOLDER", help=one_or_more)
    run.add_argument(
        "--compare", nargs=2, default=[], metavar=("A", "B"), help=f"{both}; or names of runs among the exports"
    )
    runs(run)
    check = add("check", _check, "Say what exports hold and which analyses they allow.")
    check.add_argument("exports", nargs="+", metavar="FILE_OR_FOLDER", help=one_or_more)
    codes = "exit code: 0 all of it can be read; 1 an export cannot be read; 3 only a part of one can be read"
    check.epilog = f"{check.epilog}\n{codes}"
    compare = add("compare", _compare, "Compare two runs.")
    gate = add("gate", _gate, "Compare two runs and fail where a limit is broken: exit code 1.")
    for command in (compare, gate):
        command.add_argument("compare", nargs=2, metavar="RUN", help=both)
        runs(command)
    gate.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="for example max_slowdown_percent=5; the limits stand below; may be given several times",
    )
    gate.add_argument(
        "--undecided",
        choices=("open", "fail"),
        default="open",
        help="what the gate does where a limit is not decided (default: open)",
    )
    without_limits = gate.format_help

    def with_limits() -> str:
        # the schema is read where it is asked for: it takes as long as the rest of the command line
        text, _, example = without_limits().rpartition("\nexample: ")
        return f"{text}\nlimits, and how they are judged:\n{limits_in_words()}\n\nexample: {example}"

    gate.format_help = with_limits  # type: ignore[method-assign]
    gate.add_argument("--markdown", type=Path, metavar="FILE", help="write the verdict as Markdown for a pull request")
    gate.add_argument("--badge", type=Path, metavar="FILE", help="write an SVG: passes, regressed or could not tell")
    query = add("query", _query, "Run a SELECT statement over the results, as the report cites it.")
    query.add_argument("statement", metavar="SELECT", help="DuckDB SQL; files are named relative to the results")
    query.add_argument("--results", type=Path, default=FOLDER, metavar="DIR", help=of_an_analysis)
    query.add_argument(
        "--format", choices=["text", "csv", "json"], default="text", help="text shows the first rows, the others all"
    )
    verify = add("verify", _verify, "Compare all results with the checksums recorded at the end of their run.")
    verify.add_argument("results", type=Path, nargs="?", default=FOLDER, metavar="DIR", help=of_an_analysis)
    windows = add("windows", _windows, "Write windows of time for other viewers: Chrome trace, Paraver, SQLite.")
    windows.add_argument("dataset", help="its name, as the page has it")
    windows.add_argument(
        "window",
        nargs="+",
        help="whole; at_1000us_2500us, between two times; finding_3, around a finding, counted from 0 in findings.json",
    )
    works_in_a_folder(windows)
    return parser


def _cores(text: str) -> str:
    """Return a number of processes as Snakemake takes it; with 0 it would wait for ever."""
    if text != "all" and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 nor all")
    return text


def _found(arguments: Sequence[str], out: Path) -> list[FoundExport]:
    """Return the exports that arguments name, archives unpacked in the folder of the analysis; say what is left out."""
    if not arguments:
        return []
    check_folder(out)
    search = search_exports(arguments, out / "unpacked")
    remark("".join(f"{clean_text(line)}\n" for line in [*search.numbered, *search.remarks]))
    return search.exports


def _run(options: argparse.Namespace) -> int:
    """Analyse exports, and compare two of them if asked for."""
    exports = _found(options.exports, options.out)
    named = {export.dataset: [other for other in exports if other.dataset == export.dataset] for export in exports}
    sides = [
        named[side] if side in named and not Path(side).exists() else _found([side], options.out)
        for side in options.compare
    ]
    compared = {export.path for side in sides for export in side}
    rest = [export for export in exports if export.path not in compared]
    if not rest and not sides:
        raise CausewayError("no export is named; give files or folders, for example `causeway run trace.json.gz`")
    return _analysed(options, rest, sides, [], {}, report=True)


def _compare(options: argparse.Namespace) -> int:
    return _analysed(options, [], [_found([side], options.out) for side in options.compare], ["compare"], {})


def _gate(options: argparse.Namespace) -> int:
    """Compare two runs and judge the limits; 1 if one is broken or cannot be judged."""
    files = GateFiles(options.markdown, options.badge)
    files.write_unfinished()
    check_folder(options.out)
    compared = options.out / "results" / "compare"
    if compared.is_dir():
        with alone_in(options.out):
            withdraw_verdict(compared)
    limits = settings_of(options.limit, "--limit", "max_slowdown_percent=5")
    chosen = merged({"gate": limits}, settings_of(options.set))["gate"]
    if isinstance(chosen, dict) and not sets_limit(chosen):
        files.write_unfinished(NO_LIMIT)
    sides = [_found([side], options.out) for side in options.compare]
    targets = [f"results/{LISTING}", *files.targets(), f"results/compare/{VERDICTS}"]
    if options.undecided == "fail":
        limits = {**limits, "strict": True}
    settings = {"gate": limits} if limits else {}
    return _analysed(options, [], sides, targets, settings, at_end=lambda: _verdict(options.out, files))


def _verdict(folder: Path, files: GateFiles) -> int:
    """Print the gate's verdict and copy its files; 1 if it is closed."""
    files.copy_from(folder)
    verdicts = read_json(folder / "results" / "compare" / VERDICTS)
    states = [state["state"] for state in verdicts["states"]]
    if not states:
        raise CausewayError("no limit applies; set one, for example --limit max_slowdown_percent=5")
    is_open = f"the gate is open: {counted(len(states), 'limit')}, {states.count(INCONCLUSIVE)} not decided"
    answer(*verdicts["reasons"], "the gate is closed" if verdicts["reasons"] else is_open)
    return 1 if verdicts["reasons"] else 0


def _analysed(
    options: argparse.Namespace,
    exports: list[FoundExport],
    sides: list[list[FoundExport]],
    targets: Sequence[str],
    settings: dict[str, Any],
    report: bool = False,
    at_end: Callable[[], int] = lambda: 0,
) -> int:
    """Write the folder of an analysis and run the workflow in it; return what `at_end` does, which no other command in
    the folder comes before.
    """
    columns, n_others = table_targets([*exports, *(export for side in sides for export in side)])
    measured = list(columns)
    is_from_tables = measured != ["y"]
    if is_from_tables:
        settings = merged(settings, {"targets": {"tables": measured}})
    chosen = merged(settings, settings_of(options.set))
    check_settings(chosen, with_pair=bool(sides))
    if is_from_tables and chosen["targets"]["tables"] == measured:
        more = f" ({n_others} more named as durations {'is' if n_others == 1 else 'are'} not)" if n_others else ""
        remark(f"measured in tables: {', '.join(measured)}{more}; --set targets.tables=[COLUMN] names another\n")
    page = "overview.html"
    needed = [exports]
    pair: dict[str, str] = {}
    if sides:
        runs = [_one_run(side, exports, label) for side, label in zip(sides, ("before", "after"), strict=True)]
        exports = [*exports, *(export for run in runs for export in run)]
        needed = [exports] if report else runs
        pair = {"baseline": runs[0][0].dataset, "candidate": runs[1][0].dataset}
        chosen = merged(chosen, {"compare": {"pairs": [pair]}})
        if not report:  # named as what to open first, so that it is made
            page = "compare/{baseline}__{candidate}/comparison.html".format(**pair)
            targets = [f"results/{page}", *targets]
    extra = ["--report", "results/report.zip", "--report-after-run"] if report else []
    with alone_in(options.out):
        configuration = write_analysis(options.out, exports, chosen)
        command = snakemake_command(options.out, configuration, targets, options.cores, options.profile, extra)
        refused = RefusedExports(options.out, [{export.dataset for export in group} for group in needed])
        if code := run_workflow(command, refused.why_nothing_is_left):
            return code
        remark("".join(f"{line}\n" for line in [*refused.left_out(), *refused.same_recordings()]))
        results = (options.out / "results").absolute()
        if others := datasets_of_others(results, {*(export.dataset for export in exports), *chosen.get("filters", {})}):
            remark(
                f"of earlier commands, still in {results} and in queries of it: {', '.join(others)}; remove a folder"
                " that is no longer wanted\n"
            )
        why = _why_not_compared(results, pair) if sides else None
        if why:
            remark(f"not compared: {why}\n")
        if report:
            answer(*first_screen_lines(results, {export.dataset for export in exports}))
        elif sides:
            answer(*first_screen_lines(results, {pair["candidate"]}, question=COMPARED))
        answer(f"open first   {results / page}")
        if report:
            answer(f"to forward   {results / 'report.zip'}")
        if options.open:
            webbrowser.open((results / page).as_uri())
        return at_end() or (2 if why and not report else 0)


def _why_not_compared(results: Path, pair: dict[str, str]) -> str | None:
    """Return why two runs could not be compared, None where they were."""
    path = results / "compare" / "{baseline}__{candidate}".format(**pair) / "comparison.json"
    return read_json(path)["why"] if path.is_file() else None


def _one_run(side: list[FoundExport], others: list[FoundExport], label: str) -> list[FoundExport]:
    """Return the exports of one side of a comparison as one run with a name of its own."""
    from dataclasses import replace

    names = {export.dataset for export in side}
    if len(names) > 1:
        raise CausewayError(f"{side[0].path.parent}: holds {len(names)} runs; name one, or NAME=FOLDER to join them")
    name = f"{label}_{names.pop()}"
    while name in {export.dataset for export in others}:
        name += "_2"
    return [replace(export, dataset=name) for export in side]


def _check(options: argparse.Namespace) -> int:
    """Say what each export holds, then what shows when those of a run are compared; 1 if one cannot be read, else
    `IN_PART` if only a part of one can be.
    """
    # the readers, which no other command needs, take as long to load as all else
    from causeway.command_line.check import (
        Described,
        describe_export,
        describe_run,
        perhaps_one_run,
        same_recordings_of_runs,
    )

    read: list[tuple[FoundExport, dict[str, Any]]] = []
    runs: dict[str, list[Described]] = {}
    with tempfile.TemporaryDirectory(prefix="causeway-check-") as folder:
        search = search_exports(options.exports, Path(folder))
        for export in search.exports:
            of_run = runs.setdefault(export.dataset, [])
            described = describe_export(export, len(of_run))
            of_run.append(described)
            read.append((export, described.document))
            answer(*described.lines)
    for dataset, of_run in runs.items():
        answer(*describe_run(dataset, of_run))
    answer(*same_recordings_of_runs(read), *map(clean_text, search.remarks))
    answer(*(perhaps_one_run(read) or map(clean_text, search.numbered)))
    statuses = {document["status"] for _, document in read}
    return 1 if "refused" in statuses else IN_PART if "partial" in statuses else 0


def _query(options: argparse.Namespace) -> int:
    from causeway.api.results_folder import open_results
    from causeway.command_line.query_output import write_rows

    write_rows(open_results(options.results).query(options.statement), options.format)
    return 0


def _verify(options: argparse.Namespace) -> int:
    """Print what differs from the record of the results; 1 if a file is missing or changed."""
    folders = (options.results / "results", options.results)
    results = next((folder for folder in folders if (folder / RECORD).is_file()), None)
    if results is None:
        which = "a run that has ended has one, a comparison alone has none"
        raise CausewayError(f"{options.results}: holds no results with a record of checksums: {which}")
    record = read_json(results / RECORD, "checksums")
    recorded = record["files"]
    folder = results.absolute().parent
    configuration = folder / "config.yaml"  # where it has another name, the user adds it
    again = snakemake_command(folder, configuration if configuration.is_file() else None, [], "all", None, [])
    differing = differences(results, recorded, record.get("folders", []), read_listing(results))
    lines = in_words(results, differing, again)
    remark("".join(f"{line}\n" for line in left_over_in_words(differing)))
    same = "1 file is as it was recorded" if len(recorded) == 1 else f"{len(recorded)} files are as they were recorded"
    answer(*(lines or [same]))
    return 1 if lines else 0


def _windows(options: argparse.Namespace) -> int:
    """Write windows of a dataset of an analysis that was begun."""
    files = [f"results/{options.dataset}/windows/{window}.json.gz" for window in options.window]
    configuration = existing_configuration(options.out)
    command = snakemake_command(options.out, configuration, files, options.cores, options.profile, [])
    with alone_in(options.out):
        try:
            code = run_workflow(command)
        except NoStepError:
            names = sorted(path.parent.name for path in (options.out / "results").glob("*/clocks.json"))
            raise CausewayError(
                f"{options.out}: no window of {options.dataset} can be written: the datasets with a time line are"
                f" {', '.join(names) or 'not known yet; let the analysis end'}"
            ) from None
    if not code:
        answer(*(str(options.out / file) for file in files))
    return code


def _check_working_folder() -> None:
    """Refuse a working folder that is gone, against which no path can be read."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise CausewayError("the working folder is not there any more; change to one that is") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code, as the module's docstring lists them."""
    end_without_collection()
    options = _parser().parse_args(arguments)
    try:
        _check_working_folder()
        return int(options.action(options))
    except CausewayError as error:
        remark(f"causeway: {error}\n")
        return 2
    except KeyboardInterrupt:
        remark("interrupted\n")
        return INTERRUPTED
    except Exception as error:
        fault = error if isinstance(error, OSError) else fault_behind(error)
        remark(f"causeway: {sentence(fault)}\n" if fault else traceback.format_exc())
        return 2  # Python's own code, 1, would say that a gate is closed


if __name__ == "__main__":
    sys.exit(main())
