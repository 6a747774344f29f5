"""Draw a lesson's steps: live answers of models, and finished runs as charts.

Each function returns what it showed, for the summary and the handouts.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import pandas as pd
import streamlit as st

from lama_core.candidates.lists import COMMON
from lama_core.errors import did_you_mean
from lama_core.lessons.charts import (
    OF_SERIES,
    chart_figure,
    chart_of,
    chart_table,
    missing_relations_note,
)
from lama_core.lessons.lesson import FIGURES, N_BEST, Analogy, Ask, Compare, ShowRun, Step, Try
from lama_core.lessons.step_results import StepResult
from lama_core.metrics.ways_of_asking import WAYS, runs_by_way
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.queries.analogy import SolveRequest, analogy
from lama_core.queries.blank_answers import BlankAnswer, Prediction, marked_answer
from lama_core.queries.cloze import ClozeRequest, fill
from lama_core.reports.html import grid
from lama_core.requests import command_line
from lama_core.rounding import counted, percent
from lama_core.runs.find import list_runs
from lama_core.runs.info import RunInfo
from lama_core.runs.series import find_series, place_of
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.shared_fields import ClozeSettings
from lama_core.texts import word_key
from lama_core.types import Query
from lama_core.views.colours import model_colours
from lama_core.views.mentions import NAMES
from pages.ui.lessons.lesson_models import available_models, find_or_note
from pages.ui.lessons.teacher import ENLARGED, HEIGHT, USUAL, is_teaching
from pages.ui.shared import cache, figures, predictions, screens
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.model_columns import ModelColumn, query_models, reserve_line
from pages.ui.shared.run_choice import pick_runs
from pages.ui.shared.url_state import BOUND, follow_query, title_of

CLOZE_KINDS = ("cloze", "contrast")  # kinds of run that query a blank for each fact
NO_FACTS = "These runs have no facts for this chart."
MARKS = {"gold": " ✓", "wrong": " ✗", "": ""}
# Name of a page in a lesson file, current or of an earlier version -> the page's title.
PAGES = {
    "ask": "Ask",
    "cloze": "Ask",
    "analogy": "Ask",
    "results": "Results",
    "facts": "Results",
    "prompts": "Results",
}


def draw_ask(step: Ask, key: str) -> StepResult:
    """Draw each model's five best words for a query, side by side."""
    return _draw_query(step.request)


def _draw_query(request: ClozeRequest, number: str = "") -> StepResult:
    """Draw a query's answers. number: distinguishes the queries of a step."""
    text, gold = request.text, request.gold or ""
    predictions.draw_sentence(parse_query(text).parts)
    names = available_models(request.models)
    line = reserve_line(f"{text} {number}")
    stored = {
        name: answers[text].judged(gold)
        for name, answers in cache.stored_answers(request, (text,)).items()
        if answers
    }
    columns = query_models(
        [name for name in request.models if name in names or name in stored],
        lambda name, here: cache.answer(fill.kind, replace(request, models=here), name),
        predictions.describe,
        stored=stored,
        offers=not number and not (stored and is_teaching()),
    )
    with line:
        blanks = {name: one.blank for name, one in stored.items()}
        blanks |= {name: column.answer.blanks[0] for name, column in columns.items()}
        predictions.draw_first_answers(
            {name: blanks[name] for name in request.models if name in blanks}
        )
    for column in columns.values():
        with column.place.container():
            predictions.draw_answers(column.answer.blanks[0], column.colour)
    ranked = _describe_candidates(request, columns) if columns else ""
    st.caption(plain(ranked))
    if not is_teaching():
        there = {"text": text, "gold": gold, "models": names, "candidates": request.candidates}
        _draw_link("Open on Ask", "", there)
    best = {name: blanks[name].predictions for name in request.models if name in blanks}
    runs = [f"{title_of(name)}, stored answers: {one.source}." for name, one in stored.items()]
    runs += [
        f"{title_of(name)}: {outside}."
        for name in best
        if (outside := blanks[name].describe_outside())
    ]
    return StepResult(
        heads=("model", "first", "second", "third", "fourth", "fifth"),
        rows=tuple(
            (title_of(name), *map(_word_text, items), *[""] * (N_BEST - len(items)))
            for name, items in best.items()
        ),
        title=text,
        notes=tuple(filter(None, (f"Right answer: {gold}." if gold else "", ranked, *runs))),
        firsts={(text, name): items[0].token for name, items in best.items() if items},
    )


def _describe_candidates(request: ClozeSettings, columns: Mapping[str, ModelColumn[Any]]) -> str:
    """Which words were ranked, in a sentence."""
    candidates = cache.candidates_of(replace(request, models=tuple(columns)))
    if candidates.words is None:
        return "Ranked: each model's whole vocabulary."
    by, which = ", ".join(map(predictions.short_title, columns)), ""
    if candidates.name == COMMON:
        which = " that are one token " + ("in each of them" if len(columns) > 1 else "each")
    return f"Ranked by {by}: {len(candidates.words):,} words{which}."


def _word_text(one: Prediction) -> str:
    return f"{marked_answer(one.token, one.begins, None)} ({predictions.probability(one.prob)})"


def _mark(word: str, gold: str, wrong: str) -> str:
    """The mark of a word: right answer, answer that a negation rules out, or none."""
    return {word_key(gold): "gold", word_key(wrong): "wrong"}.get(word_key(word), "")


def draw_firsts(step: Compare | Analogy, key: str) -> StepResult:
    """Draw each model's first answers to several queries or analogies."""
    # Query or analogy -> its request, the sentence's parts around the blank, the right answer,
    # and the answer that a negation rules out.
    requests: dict[str, Any] = {**step.requests}
    sentences = {
        row: request.question().query.parts
        if isinstance(request, SolveRequest)
        else parse_query(row).parts
        for row, request in requests.items()
    }
    golds = {row: request.gold or "" for row, request in requests.items()}
    wrong = step.wrong_of if isinstance(step, Compare) else {}
    one = next(iter(requests.values()))

    def query_model(name: str, installed: tuple[str, ...]) -> tuple[BlankAnswer, ...]:
        here = [replace(each, models=installed) for each in requests.values()]
        if isinstance(step, Compare):
            return tuple(cache.answer(fill.kind, each, name).blanks[0] for each in here)
        return tuple(cache.answer(analogy.kind, each, name).answer.blanks[0] for each in here)

    texts = {row: Query(tuple(parts)).text() for row, parts in sentences.items()}
    stored = {
        name: {row: answers[text] for row, text in texts.items() if text in answers}
        for name, answers in cache.stored_answers(one, texts.values()).items()
        if answers
    }
    firsts = {
        (row, name): answer.found for name, found in stored.items() for row, answer in found.items()
    }
    here = available_models(one.models)
    columns = query_models(
        [name for name in one.models if name in here or name in stored],
        query_model,
        lambda _: f"first answers to {counted(len(sentences), 'query')}",
        stored={name: next(iter(found.values())) for name, found in stored.items()},
        draw_stored=lambda name: _draw_column(name, sentences, golds, wrong, firsts),
        offers=not (stored and is_teaching()),
    )
    for name, column in columns.items():
        firsts |= {(row, name): blank for row, blank in zip(sentences, column.answer, strict=True)}
        with column.place.container():
            _draw_column(name, sentences, golds, wrong, firsts)
    notes = [_describe_candidates(one, columns)] if columns else []
    for name, found in stored.items():
        note = (
            f"{title_of(name)} isn't installed: stored answers, ranked among "
            f"{next(iter(found.values())).n_candidates:,} words."
        )
        if lacking := len(sentences) - len(found):
            note += f" {lacking} of {len(sentences)} queries have no stored answer."
        notes.append(note)
    st.caption(plain(" ".join(notes)))
    shown = [name for name in one.models if any(name == each for _, each in firsts)]
    with_gold = any(golds.values())

    def cell(row: str, name: str) -> str:
        if (row, name) not in firsts:
            return ""
        blank = firsts[row, name]
        first, outside = blank.predictions[0], blank.describe_outside()
        return (
            _word_text(first)
            + MARKS[_mark(first.token, golds[row], wrong.get(row, ""))]
            + f"; {outside}" * bool(outside)
        )

    return StepResult(
        heads=("query", *map(title_of, shown), *["right answer"] * with_gold),
        rows=tuple(
            (row, *(cell(row, name) for name in shown), *[golds[row]] * with_gold)
            for row in sentences
        ),
        notes=tuple(notes),
        firsts={place: one.predictions[0].token for place, one in firsts.items()},
    )


def _draw_column(
    name: str,
    sentences: Mapping[str, Sequence[str]],
    golds: Mapping[str, str],
    wrong: Mapping[str, str],
    firsts: Mapping[tuple[str, str], BlankAnswer],
) -> None:
    """Draw a model's first words, each in its sentence.

    A right answer that isn't first is named, unless it is the same in all of several sentences.
    """
    lines, named = [], len(golds) == 1 or len({*golds.values()}) > 1
    for row, parts in sentences.items():
        if (row, name) not in firsts:
            continue
        blank = firsts[row, name]
        first, outside = blank.predictions[0], blank.describe_outside()
        mark = _mark(first.token, golds[row], wrong.get(row, ""))
        filled = f'<b class="word">{escape(first.token)}</b>'.join(map(escape, parts))
        notes = [f"likelier: {outside}"] * bool(outside)
        if named and golds[row] and mark != "gold":
            notes.append(f"right answer: {golds[row]}")
        below = f'<div class="lx-muted">{escape(" · ".join(notes))}</div>' * bool(notes)
        lines.append(
            f'<tr class="{mark}"><td>{filled}{predictions.longer_word(first.begins)}{below}</td>'
            f'<td class="num">{predictions.probability(first.prob)}</td></tr>'
        )
    st.html(
        '<table class="lx"><thead><tr><th>first answer</th><th class="num">prob.</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def draw_run(step: ShowRun, key: str) -> StepResult:
    """Draw a chart of finished runs, with a link to Results and a table of the numbers."""
    kind = chart_of(step)
    infos = _runs_of(step)
    models = {info.id: _model_of(info, step) for info in infos}
    hint = did_you_mean(step.data, {info.dataset for info in list_runs().runs} - {step.data})
    prompts = f", prompts {step.prompts}" * (step.prompts != "manual")
    for lacking in step.models:
        if lacking in models.values() or not find_or_note(lacking):
            continue
        request = (
            AnalogyRequest(step.data, models=(lacking,))
            if step.figure == "analogies"
            else GenerateRequest(step.data, models=(lacking,))
            if step.figure == "ways"
            else ProbeRequest(step.data, models=(lacking,), prompts=step.prompts)
        )
        show_note(
            plain(f"{title_of(lacking)} has no finished run on {step.data}{hint}{prompts}. ")
            + f"Once the model is installed, make the run with `{command_line(request)}`."
        )
    if not infos:
        return StepResult(notes=("There was no finished run.",))
    missing = missing_relations_note(infos, step)
    if missing:
        show_note(plain(missing))
    with st.spinner("Counting", show_time=True):
        table: pd.DataFrame = cache.table_of_runs(
            f"lesson {step!r}",
            infos,
            lambda runs: chart_table(runs, step),
        )
    if table.empty:
        if not missing:
            show_note(NO_FACTS)
        return StepResult(notes=(missing or NO_FACTS,))
    drawn = table.assign(model=[models.get(one, one) for one in table["run"]])
    titles = {name: title_of(name) for name in step.models if name in set(drawn["model"])}
    figure = chart_figure(
        step, drawn, titles or {name: name or kind.counts for name in set(drawn["model"])}
    )
    figures.draw_figure(
        figure,
        model_colours(step.models),
        f"lesson chart {key}",
        most=HEIGHT - 130 if is_teaching() else math.inf,  # text and chart fit on the screen
        enlarged=ENLARGED / USUAL if is_teaching() else 1.0,
    )
    ids = list(dict.fromkeys(info.id for info in infos))
    run_ids = f"{ids[0]} to {ids[-1]}" if step.figure in OF_SERIES else ", ".join(ids)
    notes = [_sentence(str(note), step.models) for note in dict.fromkeys(table["note"]) if note]
    marks = {
        "low": f"Lines: 95 % intervals{kind.intervals}.",
        "freq": "Vertical marks: the Freq baseline, which answers with the relation's most "
        "frequent object that isn't another right answer.",
    }
    below = notes + [text for column, text in marks.items() if drawn[column].notna().any()]
    if below:
        st.caption("  \n".join(map(plain, below)))
    said = f"Finished runs: {run_ids}."
    numbers = st.container()
    if not is_teaching():
        _draw_link("Open in Results", *screen_of(step, infos))
    lines: list[Any] = list(figure.frame.itertuples())
    baseline = bool(drawn["freq"].notna().any())
    shown = StepResult(
        heads=(kind.rows_of(step), "model", "%", "95 % interval", kind.counts)
        + ("Freq baseline, %",) * baseline,
        rows=tuple(
            (
                str(line.row),
                figure.names.get(str(line.model), ""),
                percent(line.value),
                f"{percent(line.low)} to {percent(line.high)}" if line.low == line.low else "",
                f"{int(line.n):,}",
                *[percent(line.freq) if line.freq == line.freq else ""] * baseline,
            )
            for line in lines
        ),
        shares=tuple(float(line.value) for line in lines),
        title=figure.title,
        values={
            (str(row), str(model)): float(value)
            for row, model, value in zip(drawn["row"], drawn["model"], drawn["value"], strict=True)
        },
    )
    with numbers.expander("The numbers", icon=":material/table:"):
        st.html(f'<div class="lx-lesson">{grid(shown.heads, shown.rows, (2, 3, 4, 5))}</div>')
        st.caption(plain(said))
    return replace(shown, notes=tuple(filter(None, (said, *notes, missing))))


def screen_of(step: ShowRun, infos: Sequence[RunInfo]) -> tuple[str, screens.Params]:
    """Return the screen with a step's numbers: a page's name, and the URL parameters.

    infos: The step's runs. The screen shows these runs, not others of the same models.
    """
    models = tuple(dict.fromkeys(_model_of(info, step) for info in infos))
    if step.figure == "analogies":
        return "results", {**screens.ANALOGY_PROBES, "data": step.data, "probed": models}
    params: dict[str, str | Sequence[str]] = {"data": step.data, "relations": step.relations}
    if chart := CHARTS.get(step.figure) or chart_of(step).title * (step.figure not in FIGURES):
        params |= screens.chart(chart)
    params["p_at"] = str(step.k) if step.k > 1 else ""
    if step.figure == "slices":
        params["slice_by"] = step.by
    elif step.figure == "totals" and len(models) == 2:
        params["tab"] = "Compare"  # whose headline has both means
    elif step.figure == "mentions":
        params["mentions_of"] = NAMES[step.of]
    elif step.figure == "training":
        params["lines"] = screens.ALL_TOGETHER
    elif step.figure == "readings":
        params["part"] = screens.READINGS
    elif step.figure == "ways":
        params["way_model"] = title_of(models[0])
        for way, (run, *_) in runs_by_way(infos)[step.data, models[0]].items():
            params[f"way_{way.split()[0]}"] = run.id
        return "results", params
    if step.figure not in OF_SERIES:
        usual = pick_runs(list_runs(kinds=CLOZE_KINDS).runs, step.data, "manual").values()
        ids = [info.id for info in infos]
        params |= {"models": models} if {run.id for run in usual} >= {*ids} else {"runs": ids}
    return "results", params


def _sentence(note: str, models: Sequence[str]) -> str:
    """A note of a chart with the models' titles, beginning with a capital letter."""
    either = "|".join(map(re.escape, sorted(models, key=len, reverse=True)))
    names = re.compile(rf"(?<![\w-])(?:{either})(?![\w-])")
    if not names.match(note):
        note = note[:1].upper() + note[1:]
    return names.sub(lambda found: predictions.short_title(found.group()), note)


# Figure of a step -> the chart of Results with the same numbers; of other figures, Overview. A
# step that names a view opens the view's chart.
CHARTS = {
    "curve": screens.CURVES,
    "ranks": screens.RANKS,
    "slices": "Slices",
    "mentions": "Mentions",
    "altered": "Wording and negation",
    "wordings": "Wording and negation",
    "ways": screens.WAYS,
    **dict.fromkeys(OF_SERIES, screens.TRAINING),
}


def _model_of(info: RunInfo, step: ShowRun) -> str:
    """The model that the chart names for a run; for a checkpoint, the name of its series."""
    place = place_of(info) if step.figure in OF_SERIES else None
    return place.series if place else info.model


def _runs_of(step: ShowRun) -> tuple[RunInfo, ...]:
    """The finished runs that a step shows.

    Usually one run per model, a bundled run if there is one, aligned on common facts. For
    `analogies`: all unsupervised runs; for `ways`: a run per model and way of asking; for a series:
    all checkpoints.
    """
    if step.figure == "analogies":
        infos = list_runs(kinds=("analogy",)).intact().runs
        return tuple(
            info
            for name in step.models
            for info in infos
            if (info.dataset, info.model) == (step.data, name)
            and info.prompts.endswith("unsupervised")
        )
    if step.figure == "ways":
        found_ways = runs_by_way(list_runs(kinds=tuple(WAYS)).intact().runs)
        return tuple(
            next((info for info in infos if info.bundled), infos[0])
            for name in step.models
            for infos in found_ways.get((step.data, name), {}).values()
        )
    infos = list_runs(kinds=CLOZE_KINDS).intact().runs
    if step.figure in OF_SERIES:
        asked = (step.data, step.prompts)
        of_step = [info for info in infos if (info.dataset, info.prompts) == asked]
        series = {one.name: one.runs for one in find_series(of_step)}
        return next((series[name] for name in step.models if name in series), ())
    picked = pick_runs(infos, step.data, step.prompts)
    picked |= pick_runs([info for info in infos if info.bundled], step.data, step.prompts)
    found = tuple(picked[name] for name in step.models if name in picked)
    return tuple(run.info for run in cache.aligned(found)) if len(found) > 1 else found


def draw_try(step: Try, key: str) -> StepResult:
    """Draw fields for the reader's own queries, and a link to the page with all options."""
    shown = StepResult()
    for number, query in enumerate(step.queries, start=1):
        found = _draw_own(step, query, str(number) if number > 1 else "")
        shown = replace(found, rows=(*shown.rows, *found.rows)) if found.rows else shown
    if not step.query or step.page not in ("ask", "cloze") or step.params:
        _draw_link(f"Continue in {PAGES[step.page]}", step.page, step.params)
    return shown


def _draw_own(step: Try, query: str, number: str) -> StepResult:
    """Draw a field for a query, one for the word that the reader has in mind, and the answers."""
    sentence, word = st.columns([5, 2])
    own = sentence.text_input(
        "Your own sentence with a blank",
        query,
        key=f"own{number}",
        bind=BOUND,
        max_chars=2000,
        help="Write ___ where a word is missing.",
    )
    follow_query(own, {f"meant{number}": ""})
    meant = word.text_input(
        "Word you meant (optional)",
        key=f"meant{number}",
        bind=BOUND,
        max_chars=60,
        help="Its rank is shown for each model.",
    )
    if not (own or "").strip():
        return StepResult()
    return _draw_query(step.cloze_request(own or "", (meant or "").strip(), N_BEST), number)


def _draw_link(label: str, name: str, params: screens.Params) -> None:
    """Draw a link to a screen. name: the page's name, now or in an earlier version."""
    page, params = screens.resolve(name, params)
    st.page_link(
        page,
        label=label,
        icon=":material/open_in_new:",
        query_params=[
            (name, value)
            for name, values in params.items()
            for value in ([values] if isinstance(values, str) else values)
            if value
        ],
    )


DRAWN: dict[type[Step], Callable[[Any, str], StepResult]] = {
    Ask: draw_ask,
    Compare: draw_firsts,
    Analogy: draw_firsts,
    ShowRun: draw_run,
    Try: draw_try,
}
