"""The page Crawls: a new crawl; a crawl as a picture, a table, and by questions in SPARQL."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlencode

import pandas as pd
import streamlit as st

from lama_core.errors import UserError
from lama_core.grouping import grouped
from lama_core.reports.table_files import csv_of
from lama_core.rounding import counted, percent, percentage
from lama_core.runs.find import list_runs
from lama_core.runs.info import Run, RunInfo
from lama_core.views.view import Shown
from lama_entities.beliefs import BeliefsRequest, CheckedBeliefs, beliefs
from lama_entities.beliefs_chart import HINT, draw_broken, draw_rules, follow_bar
from lama_entities.crawl import CrawlRequest, CrawlSpec, seeds_of
from lama_entities.picture import LEAST_COLUMN, WIDTHS, Node, make_graph, svg
from lama_entities.triples import (
    EXAMPLES,
    PREFIXES,
    ExportCrawlRequest,
    QueryCrawlRequest,
    SparqlAnswer,
    all_rows,
    asked_queries,
    believed_rows,
    crawl_query,
    iri,
    short,
    summary,
    written,
)
from lama_entities.types import name_key, relation_types, type_words
from pages.ui.router import open_tab
from pages.ui.shared import cache, jobs, links, screens, visitors
from pages.ui.shared.export import draw_download, draw_export, file_stem, frame_of
from pages.ui.shared.figures import draw_figure
from pages.ui.shared.messages import draw_headline, errors_shown, plain, show_note
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
NO_OTHER, ALL, BOTH = "none", "all", "both"
ONE, ASKED = "asked of one only", "asked of"  # a choice, and a column of two crawls
FILES = {"nt": "N-Triples", "ttl": "Turtle"}
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
    form = RunForm("a crawl", _choose, noun="Crawl", result=_result, show=_show)
    job, ended = jobs.find(form.name), st.container()
    is_open = not infos or (
        job is not None and (job.running or bool(job.error and jobs.is_own(job)))
    )
    with st.expander("New crawl", icon=":material/add:", expanded=is_open):
        draw_run_form(form, ended)
    if not infos:
        if not (job and job.running):
            show_note("There is no crawl yet: start one above.")
        return
    left, right = st.columns(2, gap="large")
    title = _titles([*infos.values()])
    # The newest, and what the same command made of the other models, the first model first.
    first = _made_with(infos, next(iter(infos)))[-1]
    chosen = choose("Crawl", [*infos], key="run", first=first, show=title.__getitem__, place=left)
    others = [name for name in infos if name != chosen]
    beside = [name for name in reversed(_made_with(infos, chosen)) if name != chosen]
    other = choose(
        "Compare with",
        [NO_OTHER, *others],
        key="other",
        first=next(iter(beside), NO_OTHER),
        show=lambda name: title.get(name, name),
        place=right,
        help="The tabs then show both, and what only one of the two believes. A query about a "
        "thing that only one came to isn't asked of the other.",
    )
    crawls = [cache.finished_run(infos[name]) for name in (chosen, other) if name in infos]
    names = [*_titles([one.info for one in crawls], brief=True).values()]
    said = list(zip(names, map(summary, crawls), strict=True))
    draw_headline(". ".join(f"{name}: {found}" for name, (found, _) in said))
    asked = ". ".join(f"{name}: {asked}" for name, (_, asked) in said)
    if len(crawls) > 1:
        n_shared = len(set.intersection(*map(asked_queries, crawls)))
        asked += (
            f". Asked of both: {counted(n_shared, 'query')}; the tab Beliefs compares the answers"
        )
    st.caption(plain(f"{asked}."))
    draws = {
        "Picture": partial(_draw_picture, crawls, names),
        "Beliefs": partial(_draw_table, crawls, names),
        "Is it consistent?": partial(_draw_agreement, crawls, names),
        "Questions": partial(_draw_questions, crawls, names),
    }
    with open_tab(list(draws)) as name:
        draws[name]()


def _made_with(infos: Mapping[str, RunInfo], name: str) -> list[str]:
    """Return the crawls that the same command made, with this one, the newest first."""
    by = infos[name].request
    return [one for one, info in infos.items() if one == name or (by and info.request == by)]


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
    request = CrawlRequest(
        tuple(filter(None, map(str.strip, typed.split(";")))),
        models=models,
        type="" if kind == FROM_DATA else kind,
        dataset=data,
        most=most,
        **values,
    )
    request.check()
    seeds_of(request, cache.dataset_of(data))  # a mistake is said before Start
    return request


def _result(names: Sequence[str]) -> str:
    infos = [info for info in list_runs(kinds=(CrawlSpec.kind,)) if info.id in names]
    said = ((title_of(info.model), *summary(cache.finished_run(info))) for info in infos)
    return " ".join(f"{plain(model)}: {found}; {asked}." for model, found, asked in said)


def _show(names: Sequence[str]) -> NoReturn:
    links.go(PAGE, {"run": names[0], "other": names[1:2]})


def _titles(infos: Sequence[RunInfo], *, brief: bool = False) -> dict[str, str]:
    """Return crawl -> its title, or else model, seeds and depth; each is unique.

    Crawls of the same title also have the settings that differ, or else their numbers. brief: the
    model, and seeds and depth only if they differ.
    """
    settings = {info.id: _settings(info) for info in infos}

    def name(info: RunInfo) -> str:
        model, of = title_of(info.model), settings[info.id]
        return info.title or (model if brief else f"{model} {of['seeds']}, {of['depth']}")

    same = grouped((name(info), info.id) for info in infos)
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


def _settings(info: RunInfo) -> dict[str, str]:
    """Return setting -> what it is, of a crawl."""
    given = info.request.fields if info.request else {}
    asked = {one.name: given.get(one.name, one.default) for one in fields(CrawlRequest)}
    asked["seeds"] = given.get("seeds", ())
    words = " and ".join(map(title_of, given.get("models", ())))
    listed = asked["candidates"] != "full" and asked["candidates"] != "own"
    return {
        "seeds": f"from {', '.join(asked['seeds'])}",
        "depth": f"depth {asked['depth']}",
        "most": f"at most {asked['most']:,} queries",
        "above": f"answers above {percent(float(asked['above']))} %",
        "candidates": f"candidates {asked['candidates']}" + f" of {words}" * listed,
        "dataset": f"data {asked['dataset']}",
        "type": f"type {asked['type'] or FROM_DATA}",
        "relations": f"relations {', '.join(asked['relations']) or 'all'}",
        "context": f"context {asked['context'] or 'default'}",
        "precision": f"precision {asked['precision']}",
    }


def _cards(crawls: Sequence[Run]) -> Callable[[str, str], dict[str, Any]]:
    """Return a function: name and type -> the URL parameters of its card by the crawls' models."""
    info = crawls[0].info
    data = info.request.fields.get("dataset", info.dataset) if info.request else info.dataset
    models = [*dict.fromkeys(crawl.info.model for crawl in crawls)]
    same = {"tab": "Entities", "models": models} | (
        {"entity_data": data} if data in facts_here() else {}
    )
    return lambda name, kind: {**same, "entity": name, "entity_type": kind}


def _draw_picture(crawls: Sequence[Run], names: Sequence[str]) -> None:
    """Draw the graph; the browser takes the picture that fits its width."""
    card = _cards(crawls)

    def address(node: Node) -> str:
        there = card(node.name, node.kind)
        return f"{links.path_of(screens.ASK)}?{urlencode(there, doseq=True)}"

    whole, pictures = make_graph(crawls, names), []
    for width in WIDTHS:
        graph, columns = whole, max(2, width // LEAST_COLUMN)
        if columns < len(whole.columns):
            graph = make_graph(crawls, names, columns=columns)
            note = f"The first {columns} of {len(whole.columns)} columns: wider screens show all."
            graph = replace(graph, note=note)
        pictures.append((width, svg(graph, address, width=width, dark=theme() == "dark")))
    draw_pictures = st.components.v2.component("lama_crawl", js=_JS, isolate_styles=False)
    key = f"picture {links.path_of(PAGE)}"
    found = draw_pictures(data={"pictures": pictures}, key=key, on_opened_change=lambda: None)
    if opened := found.get("opened"):
        links.go(screens.ASK, parse_qs(str(opened)))
    if len(crawls) > 1 and not set.intersection(*map(asked_queries, crawls)):
        show_note("The two crawls have no query in common: compare crawls from the same start.")
    st.caption(
        f"{plain(whole.title)}. Strong lines: the answer by which a thing was found. Point at a "
        "name to see only its lines, at a line to read it; click a name to open its card. Wrong: "
        "not among the data's answers, which can lack some."
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


def beliefs_table(crawls: Sequence[Run], names: Sequence[str]) -> pd.DataFrame:
    """Return a row for each belief of one crawl or two, with the probability in each.

    Columns: depth (the smallest), subject, relation, answer, a probability for each crawl (NaN
    where it doesn't believe it), of two crawls which asked the query, truth, right answers,
    subject_type and object_type.
    """
    several = len(crawls) > 1
    queries = dict(zip(names, map(asked_queries, crawls), strict=True)) if several else {}
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    of = [f"{name}, %" * several or "probability, %" for name in names]
    for column, crawl in zip(of, crawls, strict=True):
        for row in believed_rows(crawl).to_dict("records"):
            key = name_key(row["subject"]), row["relation"], name_key(row["object"])
            asked = [name for name, some in queries.items() if key[:2] in some]
            line = {
                "depth": row["depth"],
                "subject": row["subject"],
                "relation": relation_types()[row["relation"]].label,
                "answer": row["object"],
                **dict.fromkeys(of, math.nan),
                **({ASKED: BOTH if len(asked) > 1 else asked[0]} if several else {}),
                "truth": row["truth"],
                "right answers": row["right"],
                "subject_type": row["subject_type"],
                "object_type": row["object_type"],
            }
            line = found.setdefault(key, line)
            line["depth"] = min(line["depth"], row["depth"])
            line[column] = percentage(row["probability"])
    return pd.DataFrame(found.values())


def _draw_table(crawls: Sequence[Run], names: Sequence[str]) -> None:
    """Draw the beliefs; a click on a row opens the card of its subject or answer."""
    rows = beliefs_table(crawls, names)
    shares = [name for name in map(str, rows) if name.endswith(", %")]
    truth = pick("Show", ("all", "right", "wrong", "unknown"), key="truth")
    who, asked = ALL, ""
    if len(crawls) > 1:
        only = [f"only {name}" for name in names]
        who = pick("Believed by", (ALL, BOTH, *only, ONE), key="by", format_func=plain)
        shared = rows[rows[ASKED] == BOTH]
        asked = (
            f" Of the {counted(len(rows), 'belief')}, {len(shared):,} are answers to queries that "
            f"both were asked; both believe {len(shared[shared[shares].notna().all(axis=1)]):,}."
        )
    are_believed = rows[shares].notna()
    if who == ONE:
        rows = rows[rows[ASKED] != BOTH]
    elif who == BOTH:
        rows = rows[are_believed.all(axis=1)]
    elif who != ALL:
        by = are_believed[f"{who.removeprefix('only ')}, %"]
        rows = rows[by & (are_believed.sum(axis=1) == 1) & (rows[ASKED] == BOTH)]
    rows = (rows if truth == "all" else rows[rows["truth"] == truth]).reset_index(drop=True)
    config: dict[str, Any] = dict.fromkeys(("subject_type", "object_type"))
    config |= {name: st.column_config.NumberColumn(format="%.1f") for name in shares}
    key = f"beliefs {[crawl.info.id for crawl in crawls]} {truth} {who}"
    cards = st.container(horizontal=True, vertical_alignment="center")
    picked = draw_table(
        rows, key=key, picks="row-or-cell", column_config=config, placeholder="–"
    ).rows
    st.caption(
        f"{counted(len(rows), 'belief')}.{asked} Wrong: not among the data's answers, which "
        "can lack some. Unknown: the data have no answer."
    )
    with cards:
        if not picked:
            st.caption("Click a row, or tap its card, to choose the card of its subject or answer.")
        else:
            row, card = rows.iloc[picked[0]], _cards(crawls)
            st.caption("Open the card of:", width="content")
            for place, kind in (("subject", "subject_type"), ("answer", "object_type")):
                there = card(str(row[place]), str(row[kind]))
                links.draw_link(plain(str(row[place])), "badge", screens.ASK, there, key=place)
    runs = [crawl.info.id for crawl in crawls]

    def draw_files() -> None:
        if (truth, who) != ("all", ALL):
            draw_download(
                f"Only these {len(rows):,}, CSV",
                lambda: csv_of(frame_of(rows)),
                f"{file_stem('beliefs', {'runs': runs})}.csv",
                key="shown beliefs csv",
                icon=":material/filter_list:",
            )
        for (form, label), (crawl, name) in product(FILES.items(), zip(crawls, names, strict=True)):
            stem = file_stem("crawl", {"run": crawl.info.id})
            label += f", {plain(name)}" * (len(crawls) > 1)
            data, file = partial(written, crawl, form), f"{stem}.{form}"
            draw_download(label, data, file, key=f"{form} {file}", icon=":material/hub:")

    export = tuple(map(ExportCrawlRequest, runs))

    def every_row() -> pd.DataFrame:
        return pd.concat([all_rows(crawl).assign(run=crawl.info.id) for crawl in crawls])

    draw_export("crawl", every_row, {"runs": runs}, export, inside=draw_files)


def _draw_agreement(crawls: Sequence[Run], names: Sequence[str]) -> None:
    """Draw how many beliefs keep each constraint, and those that don't."""
    infos = tuple(crawl.info for crawl in crawls)
    named = dict(zip((info.id for info in infos), names, strict=True))
    request = BeliefsRequest(tuple(named))
    shown: Shown[BeliefsRequest, CheckedBeliefs] = cache.shown(beliefs.view, request, infos, named)
    line = draw_figure(shown.figure, shown.inks, "agreement")
    st.caption(f"{HINT} {plain(_without(shown))}")
    draw_rules()
    follow_bar(shown, line)
    draw_broken(shown, {info.id: info.model for info in infos})
    draw_export("agreement", lambda: shown.frame, {"runs": [*named]}, request, record=shown.to_json)


def _without(shown: Shown[BeliefsRequest, CheckedBeliefs]) -> str:
    """Return which constraints can't be counted for a crawl that is compared."""
    counted_for = shown.frame.groupby("run")["constraint"].agg(set)
    every = shown.frame["constraint"].unique()
    lacking = {
        name: [one for one in every if one not in counted_for.get(run, ())]
        for run, name in shown.names.items()
    }
    return " ".join(
        f"{name} has no belief for which {' or '.join(some)} can be counted."
        for name, some in lacking.items()
        if some
    )


def _draw_questions(crawls: Sequence[Run], names: Sequence[str]) -> None:
    """Draw the query in SPARQL, the examples and the answer."""
    at = 0
    if len(crawls) > 1:
        at = names.index(pick("Ask the beliefs of", names, key="asked", format_func=plain))
    info, seconds = crawls[at].info, PUBLIC_SECONDS if visitors.is_public() else SECONDS
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "SPARQL over the beliefs: `?subject wdt:P36 ?object`. Each is also an `rdf:Statement` "
            "with `lama:probability`, `lama:truth` and `lama:depth`; names are `rdfs:label`, types "
            "`type:city`. A query only reads.",
            width="stretch",
        )
        with st.popover("Prefixes and relations", icon=":material/list:"):
            known = [f"{name}: <{of}>" for name, of in PREFIXES.items()]
            known += [
                f"{short(iri('relation', one.name))}  # {relation_types()[one.name].label}"
                for one in info.relations
            ]
            st.code("\n".join(known), language=None)
    rows = {one: _has_rows(info.id, one, seconds) for one in EXAMPLES}
    questions = sorted(EXAMPLES, key=lambda one: not rows[one])
    with st.container(gap=None):
        for question in questions:
            params = links.params_without((QUERY,)) | {QUERY: EXAMPLES[question]}
            none = " (none here)" * (not rows[question])
            links.draw_link(question + none, "arrow_forward", PAGE, params)
    query = st.text_area(
        "Query", EXAMPLES[questions[0]], key=QUERY, bind=BOUND, height=170, max_chars=20_000
    )
    st.button("Run", icon=":material/play_arrow:", help="Or press Ctrl+Enter.", key="run sparql")
    with st.empty().container(), errors_shown():  # without the last answer while asking
        request = QueryCrawlRequest(info.id, query, MOST_ROWS, seconds)
        request.check()
        with st.spinner("Asking", show_time=True):
            answer = _answer(repr(request), request, visitors.is_public())
        if not answer.rows:
            show_note("No belief matches.")
            return
        draw_table(answer.frame, key="")
        more = ", the first of more: add LIMIT or narrow it" * answer.is_cut
        st.caption(f"{counted(len(answer.rows), 'row')}{more}.")
        draw_export("sparql", lambda: answer.frame, {"run": info.id}, request)


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
