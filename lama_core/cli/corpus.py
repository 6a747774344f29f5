"""`data build-corpus` and `data find-stated`: the embedded model's training text."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lama_core.api import corpus as api
from lama_core.api.corpus import FORMS_FILE, STARTER, Stated
from lama_core.api.corpus import STATED_FILE as STATED_FILE
from lama_core.cli import commands, output


def build_corpus(*, json: commands.Json = False) -> None:
    """Build the embedded model's training text in the cache, from fetched sources.

    `prompts mine`, `extract`, `read` and `--open-book starter` read it.
    """
    with output.progress() as on_progress:
        built = api.build_corpus(on_progress=on_progress)
    n_passages = sum(source.n_passages for source in built.summary)
    if json:
        output.print_json({"passages": n_passages, "sources": len(built.summary)})
        return
    print(f"{n_passages:,} passages of {len(built.summary)} sources: {api.corpus_dir()}")


def find_stated(
    *,
    out: Annotated[
        Path | None,
        Parameter(help=f"Write which pairs co-occur to this file: {STATED_FILE} in the folder."),
    ] = None,
    forms: Annotated[
        Path | None,
        Parameter(help=f"Write the sources' sentence forms to this file: {FORMS_FILE}."),
    ] = None,
    dataset: Annotated[
        str, Parameter(help="A dataset's name, or a folder in LAMA's layout.")
    ] = STARTER,
    prompts: Annotated[
        str, Parameter(help="The wordings: a prompt set, or a folder of LPAQA's prompts.")
    ] = "paraphrases",
    without: Annotated[
        list[str] | None,
        Parameter(help="A source that the model hasn't read; repeat it for several.", negative=""),
    ] = None,
    json: commands.Json = False,
) -> None:
    """Search the embedded model's training text for facts and probe sentences, by source.

    Prints the pairs whose subject and object co-occur in a passage, the probe sentences (each
    query with its gold answer) that occur in one, and the wordings that have a sentence form of a
    source. `results --slices` and `compare --slices` read the two files in a model's folder.
    """
    with output.progress() as on_progress:
        found = api.find_stated(
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


def _print_found(found: Stated) -> None:
    whole = found.to_json()
    n_seen = sum(bool(one.form_in) for one in found.wordings)
    rows = [
        (one.source, one.n_passages, one.n_pairs, one.n_verbatim, one.n_almost, one.n_wordings)
        for one in found.sources
    ]
    n_passages = sum(one.n_passages for one in found.sources)
    rows.append(
        ("any source", n_passages, found.n_stated, whole["verbatim"], whole["almost"], n_seen)
    )
    output.print_table(
        ("source", "passages", "pairs", "verbatim", "almost verbatim", "wordings"),
        [(name, *(f"{n:,}" for n in counts)) for name, *counts in rows],
        title=f"Of {found.n_pairs:,} pairs of subject and object, those that co-occur in a passage;"
        f"\nof {whole['sentences']:,} probe sentences, those that occur in one; of "
        f"{len(found.wordings):,} wordings, those with a sentence form of the source",
    )
    seen = [one for one in found.wordings if one.form_in or one.n_almost]
    if seen:
        output.print_table(
            ("relation", "wording", "form in", "sentences", "verbatim", "almost verbatim"),
            [
                (
                    one.relation,
                    one.template,
                    ", ".join(one.form_in),
                    f"{one.n_sentences:,}",
                    f"{one.n_verbatim:,}",
                    f"{one.n_almost:,}",
                )
                for one in seen
            ],
            title="\nWordings with a sentence form of a source, or with a sentence that occurs",
        )
