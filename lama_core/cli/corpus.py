"""`data build-corpus` and `data find-cooccurring`: the embedded model's training text."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lama_core.api import corpus as api
from lama_core.api.corpus import FORMS_FILE, STARTER, STATED_FILE, CorpusSearch
from lama_core.cli import commands, output


def build_corpus(*, json: commands.Json = False) -> None:
    """Build the embedded model's training text in the cache, from fetched sources.

    The commands `prompts mine`, `extract` and `read` and the option `--open-book starter` use it.
    """
    with output.progress() as on_progress:
        built = api.build_corpus(on_progress=on_progress)
    n_passages = sum(source.n_passages for source in built.summary)
    if json:
        output.print_json({"passages": n_passages, "sources": len(built.summary)})
        return
    print(f"{n_passages:,} passages of {len(built.summary)} sources: {api.corpus_dir()}")


def find_cooccurring(
    *,
    out: Annotated[
        Path | None,
        Parameter(help=f"Write which pairs co-occur to this file ({STATED_FILE} of a model)."),
    ] = None,
    forms: Annotated[
        Path | None,
        Parameter(help=f"Write the sentence forms to this file ({FORMS_FILE} of a model)."),
    ] = None,
    dataset: Annotated[
        str, Parameter(help="A dataset's name, or a folder in LAMA's layout.")
    ] = STARTER,
    prompts: Annotated[
        str, Parameter(help="A prompt set, or a folder of LPAQA's prompts.")
    ] = "paraphrases",
    without: Annotated[
        list[str] | None,
        Parameter(
            help="A source that wasn't in the model's training; repeat for several.", negative=""
        ),
    ] = None,
    json: commands.Json = False,
) -> None:
    """Search the embedded model's training text for facts and probe sentences, by source.

    Prints how many subject-object pairs co-occur in a passage, how many probe sentences (queries
    with the gold answer filled in) occur in one, and how many wordings share a source's sentence
    form. `results --slices` and `compare --slices` use the two files in a model's folder.
    """
    with output.progress() as on_progress:
        found = api.find_cooccurring(
            out,
            dataset=dataset,
            prompts=prompts,
            without=without or (),
            forms=forms,
            on_progress=on_progress,
        )
    if json:
        output.print_json(found.to_json())
        return
    _print_found(found)
    for path in filter(None, (out, forms)):
        print(f"Written: {path}")


def _print_found(found: CorpusSearch) -> None:
    record = found.to_json()
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
            title="\nWordings whose sentence form, or one of whose sentences, occurs in a source",
        )
