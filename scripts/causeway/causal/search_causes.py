"""The causes of one target: kernels and the whole dataset searched side by side over MPI ranks, then which causes are
significant over all of them, and the documents of every scope.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from causeway.causal.data.outcome import Outcome, Scope
from causeway.causal.data.scopes import (
    DATASET_SCOPE,
    Kernel,
    PackedFeatures,
    capped,
    chosen_rows,
    feature_columns,
    in_time_order,
    kernel_names,
    kernels_that_matter,
    observations_of,
    of_kernel,
    only_kernel,
    pooled,
    read_features,
    row_blocks,
    totals_of,
    unsearched_counters,
    variance_shares,
)
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.user_interventions import configuration_values, user_interventions_of, without_scope
from causeway.causal.examination.context_graph import published_rows
from causeway.causal.examination.examine import Extent, examine, for_each_scope
from causeway.causal.models.identification import with_identification
from causeway.causal.models.scope_model import GML, TABLE, ScopeModel, read_model, scope_model, write_model
from causeway.causal.models.slow_launches import write_slow_launches
from causeway.causal.preparation.known_relations import with_kernel_names
from causeway.causal.report.across_kernels import borne_out, correct, with_kernels_variance
from causeway.causal.report.documents import write_rows, write_scope
from causeway.causal.report.kernel_effects import effects_over_kernels
from causeway.core.errors import TableError
from causeway.core.logs import LOG
from causeway.core.names.prior_knowledge import added
from causeway.core.tables import open_table, read_json, write_json
from causeway.numeric.mpi import Ranks
from causeway.numeric.parts import Parts
from causeway.numeric.process import give_back, share_one_heap
from causeway.numeric.seeds import derived_seed

DOCUMENTS = (
    *("scopes.json", "across_kernels.parquet", "dataset/graph.json", "dataset/model.gml"),
    *(f"dataset/{table}.parquet" for table in ("contributions", "refutations", "whatif")),
    *("dataset/model.parquet", "dataset/slow_launches.parquet"),
)
"""What every search writes into the folder `causal` of its target; kernels have folders like that of the dataset."""

DRAFTS = "causal/.drafts"
"""Folder of what was found in each scope of a target, not yet corrected for the number of kernels."""

AS_PUBLISHED = "as_published.parquet"
"""With `causes.as_published` beside them."""

Found = tuple[Sequence[Outcome], ScopeModel]
"""The outcome of one search for each scope that it stands for, and the model of all of them."""


def write_outcomes(outcomes: Sequence[Outcome], path: str | Path) -> None:
    """Write outcomes as a JSON document."""
    write_json({"outcomes": msgspec.to_builtins(tuple(outcomes))}, path)


def read_outcomes(path: str | Path) -> tuple[Outcome, ...]:
    """Read what `write_outcomes` wrote.

    Raises
    ------
    TableError
        If the document lacks a field, or holds one of another type or with a word that is none of its vocabulary.
    """
    try:
        return msgspec.convert(read_json(path), dict[str, tuple[Outcome, ...]])["outcomes"]
    except (msgspec.ValidationError, KeyError) as error:
        raise TableError(f"{path}: holds no outcomes of this version ({error}); delete it and run again") from None


@dataclass(frozen=True, kw_only=True)
class CauseSearch:
    """What a search reads and how.

    Attributes
    ----------
    dataset : str
    folder : Path
        Of the target and named after it, with features.parquet, kernels.parquet and configurations.parquet.
    causes : mapping
        `causes` of the configuration.
    seed : int
    """

    dataset: str
    folder: Path
    causes: Mapping
    seed: int

    @property
    def target(self) -> str:
        """The target's name."""
        return self.folder.name

    @property
    def features(self) -> Path:
        """The rows in which causes are searched."""
        return self.folder / "features.parquet"

    @property
    def kernels(self) -> Path:
        """The kernels of the target with their shares."""
        return self.folder / "kernels.parquet"

    @property
    def inputs(self) -> list[Path]:
        """All files that the search reads."""
        return [self.features, self.kernels, self.folder / "configurations.parquet"]

    def chosen(self) -> list[Kernel]:
        """Return the kernels that matter, largest share first."""
        return kernels_that_matter(self.kernels, self.causes["kernels_share"], self.causes["kernels_count"])

    def documents(self) -> list[Path]:
        """Return the files and folders that the search writes."""
        folder = self.folder / "causal"
        names = [*DOCUMENTS, *([AS_PUBLISHED] if self.causes.get("as_published") else [])]
        return [*(folder / name for name in names), *(folder / kernel.id for kernel in self.chosen())]

    def found(self) -> list[Path]:
        """Return the files and folders of what was found in each scope, not yet corrected."""
        return [self.folder / DRAFTS, *self.models([DATASET_SCOPE, *(kernel.id for kernel in self.chosen())])]

    def draft(self, scope: str) -> Path:
        """Return the file of what was found in a scope, not yet corrected."""
        return self.folder / DRAFTS / f"{scope}.json"

    def models(self, scopes: Sequence[str]) -> list[Path]:
        """Return the files of the models of some scopes."""
        return [self.folder / "causal" / scope / name for scope in scopes for name in (GML, TABLE)]

    def alone(self) -> Kernel | None:
        """Return the only kernel of the dataset; None if it has several."""
        return only_kernel(self.kernels, self.causes["kernels_share"], self.causes["kernels_count"])

    def seed_of_rows(self, scope: str) -> int:
        """Return the seed by which the rows of a scope are chosen where it has too many."""
        return derived_seed(self.seed, self.dataset, self.target, scope, "rows")

    def extent(self, table: pa.Table) -> Extent:
        """Return how far the outcome in some rows is examined; `table` has all columns of the features."""
        interventions = user_interventions_of(self.causes["what_if"])
        return Extent(
            interventions=interventions,
            by_configuration=configuration_values(table, interventions),
            totals=totals_of(self.kernels),
        )


def search_causes(search: CauseSearch, ranks: Ranks, code: Sequence[str] = ()) -> None:
    """Write what is found in each scope of a target (`CauseSearch.found`), for `write_causes`.

    Each scope is searched by one rank; nothing of its outcome depends on which.

    Parameters
    ----------
    search : CauseSearch
    ranks : Ranks
    code : sequence of str
        As of `Parts`: with it, scopes that an attempt before had finished are taken.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one; the other scopes are searched all the same.
    """
    with ranks.together():
        share_one_heap()
        blocks = row_blocks(search.features)
        kernels = [] if search.alone() else search.chosen()
        most = search.causes["max_rows"]
        rows = [pc.sum(of_kernel(blocks, kernel.id)["rows"]).as_py() or 0 for kernel in kernels]
        costs = [min(most, number) for number in (pc.sum(blocks["rows"]).as_py() or 0, *rows)]
        shared = ranks.share_of(costs)
        own = [kernels[index - 1] for index in shared if index]
        packed = packed_features(search, blocks, own)
        give_back()
        choices = [dict(search.causes), search.seed]
        with Parts(code=code) as parts:
            if 0 in shared:
                alone = search.alone()
                scopes = [DATASET_SCOPE, *([alone.id] if alone else [])]
                work = partial(write_found, search, partial(search_dataset, search, blocks), DATASET_SCOPE)
                makes = [search.draft(DATASET_SCOPE), *search.models(scopes)]
                parts.do(DATASET_SCOPE, work, makes, search.inputs, choices)
            for kernel in own:
                give_back()
                # bound here: a part may be done after the loop
                work = partial(write_found, search, partial(search_kernel, search, packed, kernel), kernel.id)
                makes = [search.draft(kernel.id), *search.models([kernel.id])]
                parts.do(kernel.id, work, makes, search.inputs, choices)


def write_causes(search: CauseSearch, ranks: Ranks) -> None:
    """Write the documents of a target's causes (`DOCUMENTS`, and a folder per kernel), from what was found in each.

    It loads dowhy, 170 MB: searches of all targets come before.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed.
    """
    with ranks.together():
        if ranks.first:
            give_back()
            names = [DATASET_SCOPE, *([] if search.alone() else [kernel.id for kernel in search.chosen()])]
            outcomes = [outcome for name in names for outcome in read_outcomes(search.draft(name))]
            write_corrected(search, {outcome.scope.scope: outcome for outcome in outcomes})


def packed_features(search: CauseSearch, blocks: pa.Table, kernels: Sequence[Kernel]) -> PackedFeatures:
    """Return the rows of some kernels in which their causes are searched, at most `causes.max_rows` of each.

    Parameters
    ----------
    search : CauseSearch
    blocks : Table
        All rows and columns of `row_blocks`.
    kernels : sequence of Kernel
    """
    chosen = capped_blocks(search, blocks, [kernel.id for kernel in kernels])
    with open_table(search.features, "features") as file:
        return PackedFeatures(file.schema_arrow, chosen_rows(file, chosen))


def capped_blocks(search: CauseSearch, blocks: pa.Table, kernels: Sequence[str]) -> pa.Table:
    """Return the blocks of some kernels with at most `causes.max_rows` rows of each.

    Parameters
    ----------
    search : CauseSearch
    blocks : Table
        All rows and columns of `row_blocks`.
    kernels : sequence of str
        Their ids.

    Returns
    -------
    Table
        Some rows of `blocks` with all columns, by kernel.
    """
    most = search.causes["max_rows"]
    chosen = [capped(of_kernel(blocks, kernel), most, search.seed_of_rows(kernel)) for kernel in kernels]
    return pa.concat_tables([blocks.slice(0, 0), *chosen])


def write_found(search: CauseSearch, find: Callable[[], Found], scope: str) -> None:
    """Write what is found in a scope, and the model of each scope that it stands for."""
    outcomes, model = find()
    for outcome in outcomes:
        facts = {"dataset": search.dataset, "target": search.target, "scope": outcome.scope.scope}
        write_model(model, search.folder / "causal" / outcome.scope.scope, facts)
    write_outcomes(outcomes, search.draft(scope))


def search_kernel(search: CauseSearch, packed: PackedFeatures, kernel: Kernel) -> Found:
    """Return the causes of one kernel, not yet corrected for the number of kernels, and its model. All that they were
    found in is no longer held then.
    """
    scope = Scope(
        search.dataset,
        search.target,
        kernel.id,
        name=kernel.name,
        seed=search.seed,
        is_collective=kernel.is_collective,
    )
    return _searched(search, lambda: packed.taken(kernel.id), scope)


def _searched(search: CauseSearch, read: Callable[[], pa.Table], scope: Scope) -> Found:
    """Return the causes of a scope in some rows of the features, which are read here, and its model."""
    table = in_time_order(read())
    give_back()
    extent = search.extent(table)
    columns = feature_columns(table, added(search.causes["columns"]))
    rows = observations_of(table, equal_kernels=scope.scope == DATASET_SCOPE)
    del table  # the search is the larger part
    outcome, evidence = discover(columns, rows, scope, unsearched_counters(search.features), extent.totals)
    give_back()
    causes = ", ".join(arrow.name for arrow in outcome.arrows) or outcome.refusal or "no cause"
    LOG.info("%s: %d rows, %s, before correction: %s", scope.scope, outcome.n_rows, outcome.verdict, causes)
    outcome = examine(with_kernel_names(outcome, kernel_names(search.kernels)), evidence, extent)
    return for_each_scope(outcome, extent.interventions), scope_model(outcome, evidence)


def search_dataset(search: CauseSearch, blocks: pa.Table) -> Found:
    """Return the causes in the whole dataset, and its model: all kernels together, with fixed effects, each weighing
    the same. An only kernel is searched once, here, and its outcome stands for both scopes.

    Parameters
    ----------
    search : CauseSearch
    blocks : Table
        All rows and columns of `row_blocks`.
    """
    chosen = pooled(blocks, search.causes["max_rows"], search.seed_of_rows(DATASET_SCOPE))
    alone = search.alone()
    scope = Scope(
        search.dataset,
        search.target,
        DATASET_SCOPE,
        seed=search.seed,
        kernel=(alone.id, alone.name) if alone else None,
        is_collective=alone is not None and alone.is_collective,
    )
    return _searched(search, lambda: read_features(search.features, chosen), scope)


def write_corrected(search: CauseSearch, uncorrected: Mapping[str, Outcome]) -> None:
    """Write the documents of all scopes, with the causes that are significant over all kernels.

    Parameters
    ----------
    search : CauseSearch
    uncorrected : mapping of str to Outcome
        By scope: each kernel that matters, and the dataset.
    """
    folder = search.folder / "causal"
    chosen = search.chosen()
    uncorrected = {
        scope: with_identification(outcome, read_model(folder / scope)) for scope, outcome in uncorrected.items()
    }
    kernels = correct([uncorrected[kernel.id] for kernel in chosen])
    (whole,) = correct([uncorrected[DATASET_SCOPE]])
    totals = totals_of(search.kernels)
    time = {kernel: own for kernel, own in totals.time.items() if kernel not in totals.collectives}
    shares = {kernel.id: kernel.share for kernel in chosen}
    whole = borne_out(whole, kernels, shares, time, kernel_names(search.kernels))
    variances = variance_shares(search.folder / "configurations.parquet")
    whole = with_kernels_variance(whole, variances)
    scopes = [(outcome.scope.scope, outcome.scope.name) for outcome in (*kernels, whole)]
    refused = without_scope(user_interventions_of(search.causes["what_if"]), scopes)
    examination = replace(whole.examination, what_ifs=(*whole.examination.what_ifs, *refused))
    whole = replace(whole, examination=examination)
    for outcome in (*kernels, whole):
        scope = outcome.scope.scope
        LOG.info("%s: %s, q = %s", scope, outcome.verdict, outcome.q_value)
        write_scope(outcome, folder / scope)
    write_slow_launches(search.folder, kernels, search.dataset, search.seed)
    facts = {"dataset": search.dataset, "target": search.target}
    effects = effects_over_kernels(kernels, variances)
    write_rows(effects, folder / "across_kernels.parquet", "across_kernels", facts)
    if search.causes.get("as_published"):
        blocks = row_blocks(search.features)
        parts = capped_blocks(search, blocks, blocks.column("kernel").unique().to_pylist())
        published = published_rows(
            read_features(search.features, parts), [kernel.id for kernel in chosen], search.target
        )
        write_rows(published, folder / AS_PUBLISHED, "as_published", facts)
    write_json({"scopes": [kernel.id for kernel in chosen]}, folder / "scopes.json", schema="scopes")
