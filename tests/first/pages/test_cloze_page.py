"""The Cloze page without a browser: the form for a subject and a relation; several blanks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opening import captions, html, open_page
from streamlit.testing.v1 import AppTest
from tiny_models import save_model_folder

from lama_core.errors import UserError
from lama_core.models.cache import check_and_add_model
from lama_core.models.protocols import FIRST_RESCORED, Kind, StatementScores
from lama_core.queries.blank_answers import BlankAnswer
from lama_core.queries.sentences import ModelSentences, compare_sentences
from pages.ui.queries.sentences import _preferred
from pages.ui.shared import predictions, query_queue, screens
from pages.ui.shared.messages import plain

pytestmark = pytest.mark.usefixtures("home")
MODEL = "minilm-mlm"
ANSWERS = "Brasília\nRio de Janeiro\nSão Paulo\nBuenos Aires"


def opened(**params: str) -> AppTest:
    """The form with what the address says."""
    return open_page("cloze", **{**screens.WORDINGS, "models": MODEL, **params})


def said(app: AppTest) -> str:
    return "\n".join(one.value for one in app.markdown)


def test_the_table_has_a_row_a_wording_and_the_box_counts_those_that_agree() -> None:
    app = opened(relation="P1376 capital of", subject="Madrid")
    table = app.dataframe[0].value
    assert list(table["wording"]) == [
        "the data's template", *["paraphrase"] * 3, "negation",
    ]  # fmt: skip
    assert table["sentence"][0] == "Madrid is the capital of ___."
    counted = [*table[f"{MODEL} answer"][:4]]
    assert len(set(counted)) == 1, "this model says the same in every wording"
    shown = counted[0] if "✓" in counted[0] else f"{counted[0]} ✗"
    boxes = "".join(one.proto.body for one in app.get("html"))
    assert f"<b>4 of 4</b> wordings give <b>{shown}</b> first" in boxes
    n_right = sum("✓" in answer for answer in table[f"{MODEL} answer"])
    assert n_right == 4 and ">negation not counted" in boxes
    assert "right: 4 of 4" not in boxes, "it is said once, above"
    assert "✓" not in table[f"{MODEL} answer"][4], "nothing is right in a negated sentence"
    assert "missed the “not”" in "".join(one.value for one in app.caption)


def test_subjects_and_objects_are_asked_as_they_are_typed() -> None:
    typed = opened(relation="P103 native language", subject="<b>Ada*")
    assert f"**{plain('<b>Ada*')}, native language**: starter has no such fact" in said(typed)
    assert "rank" not in "".join(typed.dataframe[0].value.columns)
    assert typed.dataframe[0].value["sentence"][0] == "The native language of <b>Ada* is ___."
    wrong = opened(relation="P36 capital", subject="Atlantis", object="Xyz")
    assert "right: 0 of 4" in html(wrong) and " ✗</" in html(wrong) and " ✓</" not in html(wrong)
    known = opened(relation="P37 official language", subject="Switzerland", object="German")
    assert "Italian, French. Right answer: German." in said(known)
    blank = opened(subject="the ___ of")
    (fault,) = (one.value for one in blank.error)
    assert fault.startswith(plain("The subject contains a blank")) and not blank.dataframe


def test_a_causal_model_shows_its_first_words_before_its_ranking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(save_model_folder("smollm2", tmp_path / "smollm2"))
    check_and_add_model(folder)
    drawn: list[int | None] = []
    draw = predictions.draw_answers
    whole = True

    def draw_and_note(blank: BlankAnswer, colour: str, listed: str = "") -> None:
        drawn.append(blank.n_over)
        draw(blank, colour, listed)
        if not whole:
            raise UserError("The visitor left.")

    monkeypatch.setattr(predictions, "draw_answers", draw_and_note)
    app = open_page("cloze", text="Paris is ___ in France.", models=folder, rescored="100")
    # Words that the tokenizer writes as one token, so not 1911.
    assert drawn == [FIRST_RESCORED, 56]
    assert "56 rescored words" in "".join(one.proto.body for one in app.get("html"))
    assert not any("Preliminary" in one.value for one in app.caption), "replaced by the ranking"
    app.run()
    assert drawn == [FIRST_RESCORED, 56, 56], "only the final ranking is cached"
    whole = False
    n_kept = len(query_queue.ANSWERS)
    app = open_page("cloze", text="Oslo is ___ in France.", models=folder, rescored="100")
    assert drawn[3:] == [FIRST_RESCORED] and len(query_queue.ANSWERS) == n_kept
    assert any(predictions.PRELIMINARY in one.value for one in app.caption)
    assert not query_queue.QUEUE.n_running and not query_queue.QUEUE.n_waiting


def test_an_example_of_the_paper_has_its_published_answers_below() -> None:
    app = open_page("cloze", text="Ravens can ___.", gold="fly", models=MODEL)
    assert [app.text_input(key=key).value for key in ("text", "gold")] == ["Ravens can ___.", "fly"]
    assert plain("published log-probabilities: fly ✓ -1.5, fight -1.8") in captions(app)
    assert "published" not in captions(open_page("cloze", text="Rome is ___.", models=MODEL))


def test_a_missing_blank_is_added_with_one_click_and_a_question_is_asked_on_its_tab(
    gone: list[dict[str, Any]],
) -> None:
    for typed, text, gold in (
        ("The capital of France is", "The capital of France is ___.", ""),
        ("Paris is  the capital of France.", "Paris is the capital of ___.", "France"),
    ):
        app = open_page("cloze", models=MODEL, text=typed)
        assert app.error
        app.button(key="blank").click().run()
        assert [app.text_input(key=key).value for key in ("text", "gold")] == [text, gold]
        assert not app.error and not [one for one in app.button if one.key == "blank"]
    app = open_page("cloze", models=MODEL, text="Who wrote Don Quixote?")
    app.button(key="blank").click().run()
    assert (gone[0]["tab"], gone[0]["question"]) == ("Question", "Who wrote Don Quixote?")


def ranked(**params: str) -> AppTest:
    given = {"text": "The capital of Brazil is ___.", "answers": ANSWERS, "models": MODEL}
    return open_page("cloze", **{**screens.ONLY_THESE, **given, **params})


def test_a_worked_example_ranks_phrases_and_marks_the_gold() -> None:
    app = ranked(right_answer="Brasília")
    assert not app.error
    shown = html(app)
    table = shown[: shown.index("</table>")]
    assert table.count('<td class="word">') == 4
    assert '<tr class="gold"' in table and "Rio de Janeiro" in table
    scores = [float(cell.split("<")[0]) for cell in table.split('lx-detail">-')[1:]]
    assert scores == sorted(scores) and 0 < scores[0] < scores[-1], "the minus is cut off"
    rio = next(row for row in table.split("<tr")[1:] if "Rio de Janeiro" in row)
    tokens = [line.split() for line in rio.split('title="')[1].split('"')[0].splitlines()]
    assert [token for token, _ in tokens] == ["rio", "de", "janeiro"]
    assert all(float(value) <= 0 for _, value in tokens), "the model is sure: 0.00 when rounded"
    assert "Right answer <b>Brasília</b>: rank <b>" in shown and "the first" in shown
    assert shown.count("lx-strip") == 4


def test_answers_with_equal_scores_share_their_ranks() -> None:
    shown = html(ranked(text="Oslo is in ___.", answers="Norway\nnorway\nRome"))
    assert shown.count('<td class="rank">1–2</td>') == 2 and '<td class="rank">3</td>' in shown
    assert "Equal scores share the ranks 1–2: Norway, norway." in shown
    assert "No answer leads" in shown and "<b>Norway, norway</b>" in shown
    given = {"text": "Oslo is in ___.", "answers": "Norway\nnorway", "right_answer": "norway"}
    assert "rank <b>1–2</b> of 2, equal to the best other answer" in html(ranked(**given))


def test_what_is_ranked_is_shown_as_text_and_mistakes_are_a_sentence() -> None:
    assert "<b>Ada*" not in html(ranked(answers="<b>Ada*\nOslo"))
    assert "&lt;b&gt;Ada*" in html(ranked(answers="<b>Ada*\nOslo"))
    (fault,) = (one.value for one in ranked(answers="Oslo\nOslo").error)
    assert plain("occurs twice") in fault


def test_sentences_are_compared_token_by_token() -> None:
    app = open_page("cloze", **screens.WHOLE_SENTENCES, models=MODEL)
    assert not app.error
    shown = html(app)
    than = "has a higher pseudo-log-likelihood than that with <b>is</b>: +"
    assert f"The sentence with <b>are</b> {than}" in shown
    assert "likelier" not in shown, "no ratio of probabilities follows"
    assert any("the sum is a pseudo-log-likelihood" in one.value for one in app.caption)
    assert shown.count("lx-strip") == 2 and "<b>are: sum -" in shown and "<b>is: sum -" in shown
    marked = [one.split(">")[1].split("<")[0] for one in shown.split("lx-token marked")[1:]]
    assert marked == ["are", "is"]
    first, second = (float(one.split(",")[0]) for one in shown.split(": sum ")[1:])
    less = float(shown.split("compared with are: ")[1].split(",")[0])
    assert less == pytest.approx(second - first, abs=0.011)
    app.text_area(key="sentences").set_value("Only one.").run()
    assert plain("number of sentences is 1") in app.error[0].value


def test_most_of_the_probability_outside_the_candidates_is_said_and_one_click_takes_it_in() -> None:
    app = open_page("cloze", text="The doctor said that ___ would be late.", models=MODEL)
    assert 'it<div class="lx-muted">not ranked: function word' in html(app)
    (button,) = (one for one in app.button if one.label.startswith("Include function words (about"))
    button.click().run()
    assert app.query_params["candidates"] == "own-words"
    first = html(app).split('<td class="word">')[1].split("<")[0]
    assert first == "it"
    assert not any("outside the candidates" in one.value for one in app.markdown)
    common = open_page("cloze", text="The capital of France is ___.", models=MODEL)
    assert not any("outside the candidates" in one.value for one in common.markdown)


def test_models_answer_with_their_own_words_unless_the_url_says_common(tmp_path: Path) -> None:
    folder = str(save_model_folder("smollm2", tmp_path / "small"))  # it writes few words
    check_and_add_model(folder)
    params = {"text": "The largest city of Norway is ___.", "models": ["minilm-mlm-twin", folder]}
    own = open_page("ask", **params, gold="Oslo")
    assert "MiniLM-MLM twin: <b>bergen</b> (wrong)" in html(own)
    assert 'rank <b>2</b><span class="lx-detail"> of 22,426 words of this model' in html(own)
    own.selectbox(key="candidates").set_value("common").run()
    first = html(own).split("MiniLM-MLM twin: <b>")[1].split("</b>")[0]
    app = open_page("ask", **params, gold=first, candidates="common")
    after = ' (correct) <span class="lx-muted">(likelier, but not ranked: bergen)</span> ·'
    assert f"MiniLM-MLM twin: <b>{first}</b>{after}" in html(app)
    assert f"not ranked: several tokens in {folder}" in html(app)
    (button,) = (one for one in app.button if one.label.startswith("Rank each model's own words"))
    button.click().run()
    assert "MiniLM-MLM twin: <b>bergen</b> (wrong)" in html(app)


def test_a_text_that_the_models_dont_read_says_which_language_they_read() -> None:
    for text, script in (
        ("法国的首都是___。", "in Chinese characters"),
        ("😀 ___ 😀", "has no words"),
    ):
        app = open_page("cloze", text=text, models=MODEL)
        (note,) = (one.value for one in app.info)
        assert script in note and "English" in note
        assert not app.error and "lx" in html(app)


def test_only_a_causal_models_sentences_are_compared_as_probabilities() -> None:
    text = ("It is a cat.", "It is a dog.")
    scores = [
        StatementScores((word,), np.array([value], np.float32), np.array([True]))
        for word, value in (("cat", -1.0), ("dog", -3.0))
    ]
    found = compare_sentences(text, scores)
    causal, masked = (
        _preferred(ModelSentences("m", kind, sentences=found, n_left_out=0))
        for kind in ("causal", "masked")
    )
    than = "than that with <b>dog.</b>: "
    start = "The sentence with <b>cat.</b>"
    assert causal.startswith(f"{start} is about 7.4 times likelier {than}log")
    assert masked == f"{start} has a higher pseudo-log-likelihood {than}+2.00."


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_sentences_of_different_lengths_are_ranked_by_their_means(kind: Kind) -> None:
    """The last has the lowest sum, -9, and the highest mean, -3; each is named by its number."""
    texts = ("Cats purr.", "Dogs bark.", "Old dogs rarely bark.")
    tokens = [
        StatementScores(
            ("t",) * len(values), np.array(values, np.float32), np.ones(len(values), bool)
        )
        for values in ([-4.0, -4.0], [-3.5, -3.5], [-3.0, -3.0, -3.0])
    ]
    found = ModelSentences("m", kind, sentences=compare_sentences(texts, tokens), n_left_out=0)
    assert [one.text for _, one in found.ranked()] == [*texts[::-1]]
    assert _preferred(found) == (
        "<b>Sentence 3</b> has the highest mean per token, before <b>Sentence 2</b>: +0.50."
    )
