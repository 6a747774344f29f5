"""The page Crawls: a new crawl; a crawl as a picture, a table, and by questions in SPARQL."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import NoReturn
from urllib.parse import parse_qs, urlencode

import streamlit as st

from lama_core.errors import UserError
from lama_core.grouping import grouped
from lama_core.rounding import counted, percent, percentage
from lama_core.runs.find import list_runs
from lama_core.runs.info import Run, RunInfo
from lama_core.views.view import Shown
from lama_entities.beliefs import BeliefsRequest, CheckedBeliefs, beliefs
from lama_entities.beliefs_chart import ABOUT, draw_broken
from lama_entities.crawl import CrawlRequest, CrawlSpec
from lama_entities.picture import LEAST_COLUMN, WIDTHS, Node, make_graph, svg
from lama_entities.triples import (
    EXAMPLES,
    ExportCrawlRequest,
    QueryCrawlRequest,
    SparqlAnswer,
    believed_rows,
    crawl_query,
    summary,
    written,
)
from lama_entities.types import type_words
from pages.ui.router import open_tab
from pages.ui.shared import cache, jobs, links, screens, visitors
from pages.ui.shared.export import draw_download, draw_export, file_stem
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import draw_headline, plain, show_note
from pages.ui.shared.request_fields import draw_field, fields_of
from pages.ui.shared.run_form import (
    KEPT,
    RunForm,
    choose_models,
    draw_no_data,
    draw_run_form,
    facts_here,
)
from pages.ui.shared.style import theme
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, choose, pick, title_of

PAGE = "pages/crawls.py"
ABOUT_PAGE = (
    "What does a model believe about a thing, about its answers, about the answers to these? A "
    "crawl starts at one or more names, asks each relation that fits, and follows the answers that "
    "are probable enough."
)
NUMBERS = {"depth": "Depth", "most": "Queries (at most)", "above": "Least probability"}
TYPE = "Type"
FROM_DATA = "as in the data"
NO_OTHER = "none"
MOST_ROWS, SECONDS, PUBLIC_SECONDS = 1000, 10.0, 5.0  # of a query on the page
PUBLIC_MOST = 2000  # queries of a crawl in public mode
QUERY = "sparql"
_JS = Path(__file__).with_name("picture.js").read_text(encoding="utf-8")
_asking = threading.BoundedSemaphore(2)  # in public mode, so many queries in SPARQL at a time


def draw() -> None:
    """Draw the page: the form, and the chosen crawl in tabs."""
    st.header("Crawls", anchor=False)
    st.caption(ABOUT_PAGE)
    listing = list_runs(kinds=(CrawlSpec.kind,)).intact()
    for problem in listing.problems:
        show_note(plain(problem))
    infos = {info.id: info for info in reversed(listing.runs)}  # the newest first
    labels = {**NUMBERS, "type": TYPE}
    form = RunForm("a crawl", _choose, noun="Crawl", result=_result, show=_show, labels=labels)
    job, ended = jobs.find(form.name), st.container()
    is_open = not infos or (
        job is not None and (job.running or bool(job.error and jobs.is_own(job)))
    )
    with st.expander("New crawl", icon=":material/add:", expanded=is_open):
        draw_run_form(form, ended)
    if not infos:
        show_note("There is no crawl yet: start one above.")
        return
    left, right = st.columns(2, gap="large")
    title = _titles([*infos.values()])
    chosen = choose("Crawl", [*infos], key="run", show=title.__getitem__, place=left)
    others = [name for name in infos if name != chosen]
    other = choose(
        "Compare with",
        [NO_OTHER, *others],
        key="other",
        show=lambda name: title.get(name, name),
        place=right,
        help="The picture then shows what only one of the two believes.",
    )
    crawls = [Run(infos[name]) for name in (chosen, other) if name in infos]
    draw_headline(". ".join(f"{title[one.info.id]}: {summary(one)}" for one in crawls))
    alone = f"Only of {title[chosen]}. " * (len(crawls) > 1)
    draws = {
        "Picture": partial(_draw_picture, crawls, title),
        "Beliefs": partial(_draw_table, crawls[0], alone),
        "Do they agree?": partial(_draw_agreement, crawls),
        "Questions": partial(_draw_questions, crawls[0], title[chosen]),
    }
    with open_tab(list(draws)) as name:
        draws[name]()


def _choose() -> CrawlRequest | None:
    """Draw the fields of a new crawl; return its request, None if a choice is missing."""
    names = facts_here()
    if not names:
        draw_no_data("facts")
        return None
    left, right = st.columns(2, gap="large")
    with left:
        typed = st.text_input(
            "Start from",
            "Marie Curie",
            key="seeds",
            bind=BOUND,
            persist_state=KEPT,
            help="A name, or several, separated by semicolons.",
        )
        kinds = (FROM_DATA, *type_words())
        kind = st.selectbox(TYPE, kinds, key="seed_type", bind=BOUND, persist_state=KEPT)
    with right:
        models = choose_models("crawl models")
        data = choose("Data", names, key="crawl_data")
    numbers, values = fields_of(CrawlRequest), {}
    for (name, label), place in zip(NUMBERS.items(), st.columns(3, gap="large"), strict=True):
        with place:
            values[name] = draw_field(numbers[name], f"crawl_{name}", label)
    if not models:
        show_note("Choose at least one model.")
        return None
    if None in values.values():
        show_note("Type a number in each field.")
        return None
    most = min(int(values.pop("most")), PUBLIC_MOST if visitors.is_public() else 10**9)
    return CrawlRequest(
        tuple(filter(None, map(str.strip, typed.split(";")))),
        models=models,
        type="" if kind == FROM_DATA else kind,
        dataset=data,
        most=most,
        **values,
    )


def _result(names: Sequence[str]) -> str:
    infos = [info for info in list_runs(kinds=(CrawlSpec.kind,)) if info.id in names]
    return " ".join(f"{plain(title_of(info.model))}: {summary(Run(info))}." for info in infos)


def _show(names: Sequence[str]) -> NoReturn:
    links.go(PAGE, {"run": names[0]})


def _titles(infos: Sequence[RunInfo]) -> dict[str, str]:
    """Return crawl -> its title, or else model, seeds and depth; each is unique.

    Crawls of the same title also have the settings that differ, or else their numbers.
    """
    settings = {info.id: _settings(info) for info in infos}
    same = grouped((info.title or _title(info), info.id) for info in infos)
    titles = {}
    for title, runs in same.items():
        for run in runs:
            differ = [
                words
                for name, words in settings[run].items()
                if len({settings[other].get(name) for other in runs}) > 1
            ]
            titles[run] = ", ".join([title, *differ])
    n_same = Counter(titles.values())
    return {
        run: f"{title} ({run[-10:]})" if n_same[title] > 1 else title
        for run, title in titles.items()
    }


def _title(info: RunInfo) -> str:
    given = info.request.fields if info.request else {}
    seeds, depth = ", ".join(given.get("seeds", ())), given.get("depth", 2)
    return f"{title_of(info.model)} from {seeds}, depth {depth}"


def _settings(info: RunInfo) -> dict[str, str]:
    """Return setting -> what it is, of a crawl."""
    given = info.request.fields if info.request else {}
    asked = {one.name: given.get(one.name, one.default) for one in fields(CrawlRequest)}
    words = " and ".join(map(title_of, given.get("models", ())))
    listed = asked["candidates"] != "full" and asked["candidates"] != "own"
    return {
        "most": f"at most {asked['most']:,} queries",
        "above": f"answers above {percent(float(asked['above']))} %",
        "candidates": f"candidates {asked['candidates']}" + f" of {words}" * listed,
        "dataset": f"data {asked['dataset']}",
        "type": f"type {asked['type'] or FROM_DATA}",
        "relations": f"relations {', '.join(asked['relations']) or 'all'}",
        "context": f"context {asked['context'] or 'default'}",
        "precision": f"precision {asked['precision']}",
    }


def _labels(info: RunInfo) -> dict[str, str]:
    return {one.name: one.label or one.name for one in info.relations}


def _cards(info: RunInfo) -> Callable[[str, str], dict[str, str]]:
    """Return a function: name and type -> the URL parameters of its card by the crawl's model."""
    data = info.request.fields.get("dataset", info.dataset) if info.request else info.dataset
    same = {"tab": "Entities", "models": info.model} | (
        {"entity_data": data} if data in facts_here() else {}
    )
    return lambda name, kind: {**same, "entity": name, "entity_type": kind}


def _draw_picture(crawls: Sequence[Run], title: Mapping[str, str]) -> None:
    """Draw the graph; the browser takes the picture that fits its width."""
    card = _cards(crawls[0].info)
    labels = {name: label for crawl in crawls for name, label in _labels(crawl.info).items()}

    def address(node: Node) -> str:
        return f"{links.path_of(screens.ASK)}?{urlencode(card(node.name, node.kind))}"

    models = [title_of(crawl.info.model) for crawl in crawls]
    if len(crawls) > 1:
        models = [title[crawl.info.id] for crawl in crawls]
    pictures = []
    for width in WIDTHS:
        graph = make_graph(crawls, labels, models, columns=max(2, width // LEAST_COLUMN))
        pictures.append((width, svg(graph, address, width=width, dark=theme() == "dark")))
    draw_pictures = st.components.v2.component("lama_crawl", js=_JS, isolate_styles=False)
    key = f"picture {links.path_of(PAGE)}"
    found = draw_pictures(data={"pictures": pictures}, key=key, on_opened_change=lambda: None)
    if opened := found.get("opened"):
        links.go(screens.ASK, parse_qs(str(opened)))
    whole = make_graph(crawls, labels, models)
    st.caption(
        f"{plain(whole.title)}. Strong lines: the answer by which a thing was found. Thin lines: "
        "further beliefs. Point at a line to read it; click a name to open its card. The tab "
        "Beliefs has all as a table."
    )
    stem = file_stem("crawl", {"runs": [crawl.info.id for crawl in crawls]})
    with st.container(horizontal=True):
        draw_download(
            "SVG",
            lambda: svg(whole, None, width=WIDTHS[0], dark=False),
            f"{stem}.svg",
            key="picture svg",
            icon=":material/download:",
        )
        draw_download(
            "PNG",
            lambda: _png(svg(whole, None, width=WIDTHS[0], dark=False)),
            f"{stem}.png",
            key="picture png",
            icon=":material/download:",
        )


def _png(picture: str) -> bytes:
    import vl_convert  # slow to import

    return vl_convert.svg_to_png(picture, scale=2)


def _draw_table(crawl: Run, alone: str) -> None:
    """Draw the beliefs; a click on a row opens the card of its subject or answer."""
    truth = pick("Show", ("all", "right", "wrong", "unknown"), key="truth")
    rows, labels = believed_rows(crawl), _labels(crawl.info)
    rows = rows if truth == "all" else rows[rows["truth"] == truth].reset_index(drop=True)
    table = rows[["depth", "subject"]].assign(
        relation=rows["relation"].astype(str).map(labels),
        answer=rows["object"],
        probability=rows["probability"].map(percentage),
        truth=rows["truth"],
    )
    table["right answers"] = rows["right"]
    table = table.rename(columns={"probability": "probability, %"})
    config = {"probability, %": st.column_config.NumberColumn(format="%.1f")}
    key = f"beliefs {crawl.info.id} {truth}"
    picked = draw_table(table, key=key, picks="single-row", column_config=config).rows
    st.caption(
        f"{counted(len(table), 'belief')}. {plain(alone)}Unknown: the data have no answer. Click a "
        "row to open a card."
    )
    if picked:
        row, card = rows.iloc[picked[0]], _cards(crawl.info)
        with st.container(horizontal=True):
            for place in ("subject", "object"):
                name, kind = str(row[place]), str(row[f"{place}_type"])
                links.draw_link(plain(name), "badge", screens.ASK, card(name, kind), key=place)
    made = {"run": crawl.info.id}

    def draw_files() -> None:
        for form, label in (("nt", "N-Triples"), ("ttl", "Turtle")):
            name = f"{file_stem('crawl', made)}.{form}"
            data = partial(written, crawl, form)
            draw_download(label, data, name, key=f"crawl {form}", icon=":material/hub:")

    export = ExportCrawlRequest(crawl.info.id)
    draw_export("crawl", lambda: crawl.facts, made, export, inside=draw_files)


def _draw_agreement(crawls: Sequence[Run]) -> None:
    """Draw how many beliefs keep each constraint, and those that don't."""
    infos = tuple(crawl.info for crawl in crawls)
    names = _titles(infos)
    request = BeliefsRequest(tuple(names))
    shown: Shown[BeliefsRequest, CheckedBeliefs] = cache.shown(beliefs.view, request, infos, names)
    draw_figure(shown.figure, shown.inks, "agreement")
    st.caption(ABOUT)
    draw_broken(shown, {info.id: info.model for info in infos})
    draw_export("agreement", lambda: shown.frame, {"runs": [*names]}, request, record=shown.to_json)


def _draw_questions(crawl: Run, title: str) -> None:
    """Draw the query in SPARQL, the examples and the answer."""
    st.caption(
        f"SPARQL over the beliefs of {plain(title)}: `?subject wdt:P36 ?object`. Each is also "
        "an `rdf:Statement` with `lama:probability`, `lama:truth` and `lama:depth`; names are "
        "`rdfs:label`, types `type:city`. A query only reads."
    )
    seconds = PUBLIC_SECONDS if visitors.is_public() else SECONDS
    questions = sorted(EXAMPLES, key=lambda one: not _has_rows(crawl.info.id, one, seconds))
    with st.container(gap=None):
        for question in questions:
            params = links.params_without((QUERY,)) | {QUERY: EXAMPLES[question]}
            links.draw_link(question, "arrow_forward", PAGE, params)
    query = st.text_area(
        "Query", EXAMPLES[questions[0]], key=QUERY, bind=BOUND, height=170, max_chars=20_000
    )
    st.button("Run", icon=":material/play_arrow:", help="Or press Ctrl+Enter.", key="run sparql")
    request = QueryCrawlRequest(crawl.info.id, query, MOST_ROWS, seconds)
    request.check()
    with st.spinner("Asking", show_time=True):
        answer = _answer(repr(request), request, visitors.is_public())
    if not answer.rows:
        show_note("No belief matches.")
        return
    draw_table(answer.frame, key="")
    more = ", the first of more: add LIMIT or narrow it" * answer.is_cut
    st.caption(f"{counted(len(answer.rows), 'row')}{more}.")
    draw_export("sparql", lambda: answer.frame, {"run": crawl.info.id}, request)


def _has_rows(run: str, question: str, seconds: float) -> bool:
    """Whether an example has rows; its answer is kept, so that a click shows it at once."""
    request = QueryCrawlRequest(run, EXAMPLES[question], MOST_ROWS, seconds)
    with suppress(UserError):  # too long
        return bool(_answer(repr(request), request, visitors.is_public()).rows)
    return False


@cache.cached(100)
def _answer(what: str, _request: QueryCrawlRequest, is_public: bool) -> SparqlAnswer:
    """Return the answer to a query; in public mode, few visitors are answered at a time."""
    if not is_public:
        return crawl_query.answer(_request)
    with _asking:
        return crawl_query.answer(_request)
