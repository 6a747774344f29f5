"""`data find-cooccurring`: a dataset's facts in a corpus."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lama_core.cli import commands, output
from lama_core.datasets.library.installed import STARTER
from lama_core.metrics import corpus_search
from lama_core.metrics.cooccurrence import STATED_FILE


def find_cooccurring(
    *,
    out: Annotated[
        Path | None,
        Parameter(help=f"Write which pairs co-occur to this file ({STATED_FILE} of a model)."),
    ] = None,
    corpus: Annotated[
        str,
        Parameter(
            help="A folder, or a .txt or .jsonl file. Default: the embedded model's training text."
        ),
    ] = STARTER,
    dataset: Annotated[
        str, Parameter(help="A dataset's name, or a folder in LAMA's layout.")
    ] = STARTER,
    prompts: Annotated[
        str, Parameter(help="A prompt set, or a folder of LPAQA's prompts.")
    ] = "paraphrases",
    without: Annotated[
        list[str] | None,
        Parameter(
            help="Name of a file that isn't searched, without its ending; repeat for several.",
            negative="",
        ),
    ] = None,
    json: commands.Json = False,
) -> None:
    """Search a corpus for a dataset's facts and probe sentences, file by file.

    Prints how many subject-object pairs co-occur in a passage, how many probe sentences (queries
    with the gold answer filled in) occur in one, and, for the embedded model's training text, how
    many wordings share a source's sentence form. `results slices` and `compare --slices` use the
    written file in a model's folder.
    """
    with output.progress() as on_progress:
        found = corpus_search.find_cooccurring(
            out,
            dataset=dataset,
            prompts=prompts,
            corpus=corpus,
            without=without or (),
            on_progress=on_progress,
        )
    record = found.to_json()
    if json:
        output.print_json(record)
        return
    rows = [tuple(source.values()) for source in record["sources"]]
    n_passages = sum(source.n_passages for source in found.sources)
    n_seen = sum(bool(wording.form_in) for wording in found.wordings)
    rows.append(
        ("any source", n_passages, found.n_stated, record["verbatim"], record["almost"], n_seen)
    )
    output.print_table(
        ("source", "passages", "pairs", "verbatim", "almost verbatim", "wordings"),
        [(name, *(f"{n:,}" for n in counts)) for name, *counts in rows],
        title=f"pairs: how many of {found.n_pairs:,} subject-object pairs co-occur in a passage\n"
        f"verbatim, almost verbatim: how many of {record['sentences']:,} probe sentences occur in "
        "a passage\n"
        f"wordings: how many of {len(found.wordings):,} have a sentence form of the source",
    )
    seen = [wording for wording in found.wordings if wording.form_in or wording.n_almost]
    if seen:
        output.print_table(
            ("relation", "wording", "form in", "sentences", "verbatim", "almost verbatim"),
            [
                (
                    wording.relation,
                    wording.template,
                    ", ".join(wording.form_in),
                    f"{wording.n_sentences:,}",
                    f"{wording.n_verbatim:,}",
                    f"{wording.n_almost:,}",
                )
                for wording in seen
            ],
            title="\nWordings found in a source: as a sentence form, or as a whole sentence",
        )
    if out is not None:
        output.print_line(f"Written: {out}")
