"""Sliders for custom prompt weights, and the ensemble's accuracy with them."""

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from lama_core.probes.prompts.ensemble import top_k_weights
from lama_core.rounding import fixed, percent, percentage, rounded
from pages.ui.prompts.study_choice import PromptsChoice
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import plain
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import BOUND, pick

MOST_SLIDERS = 8
STARTS = ("optimised", "top1", "top3", "equal")
Floats = NDArray[np.float32]


def starting_weights(choice: PromptsChoice, start: str) -> Floats:
    """Return the weights that the sliders begin with, float32 [prompt of the pool]."""
    study = choice.study
    members = list(choice.eligible)
    weights = np.zeros(len(study.pool.entries), np.float32)
    found = study.ensemble(choice.combination, "optimised")
    if start == "optimised" and found is not None:
        return found[0].weights
    k = {"top1": 1, "top3": 3}.get(start, len(members))
    weights[members] = top_k_weights(study.train_accuracies[members], k)
    return weights


def draw_weights(choice: PromptsChoice) -> None:
    """Draw sliders for the prompts with the largest weights, and P@1 with the chosen weights."""
    if len(choice.eligible) < 2:
        return
    is_asked = any(key.startswith(("weight", "start")) for key in st.query_params)
    with st.expander("Your own weights: move sliders to see how P@1 changes", expanded=is_asked):
        _draw_sliders(choice)


def _draw_sliders(choice: PromptsChoice) -> None:
    """Draw a slider for each prompt, and the ensemble's P@1."""
    study = choice.study
    start = pick(
        "Begin with",
        STARTS,
        key="start",
        help="**optimised**: the fitted weights. **top1**, **top3**: the best prompts on the "
        "training facts, equally weighted. **equal**: all prompts, equally weighted.",
    )
    first = starting_weights(choice, start)
    order = np.argsort(-first - 1e-3 * study.train_accuracies, kind="stable")
    shown = [int(number) for number in order if int(number) in choice.eligible][:MOST_SLIDERS]
    sliders, result = st.columns([3, 2], gap="large")
    weights = np.zeros_like(first)
    with sliders:
        for position, number in enumerate(shown):
            weights[number] = st.slider(
                plain(study.pool.prompts[number].template),
                0,
                100,
                round(100 * float(first[number])),
                format="%d",
                key=f"weight{position}-{study.relation.name}-{choice.combination}-{start}",
                bind=BOUND,
                help=f"P@1 on training facts: {percent(study.train_accuracies[number])} %",
            )
        if len(choice.eligible) > len(shown):
            rest = len(choice.eligible) - len(shown)
            st.caption(f"The other {rest} prompts have weight 0.")
    if not weights.sum():
        result.info("Give at least one prompt a weight above 0.", icon=":material/tune:")
        return
    weights = weights / weights.sum()
    with result:
        _draw_accuracy(choice, weights)


def _draw_accuracy(choice: PromptsChoice, weights: Floats) -> None:
    """Draw P@1 with these weights, optimised weights, the best prompt alone, and equal weights."""
    study = choice.study
    own = study.judge(weights)
    accuracy = float(own.correct.mean())
    rows: list[dict[str, str | float]] = []
    shares = []
    for title, start in (("optimised", "optimised"), ("best prompt", "top1"), ("equal", "equal")):
        answers = study.judge(starting_weights(choice, start))
        shares.append(percentage(answers.correct.mean(), 6))
        rows.append({"weights": title, "P@1": rounded(shares[-1], 1)})
    gain = percentage(accuracy, 6) - shares[0]
    st.metric(
        "P@1 of your weights",
        f"{percent(accuracy)} %",
        f"{fixed(gain, 1, signed=True)} points compared with optimised"
        if abs(gain) >= 0.05
        else None,
    )
    draw_table(
        pd.DataFrame(rows),
        column_config={
            "P@1": st.column_config.ProgressColumn(
                "P@1 on the same facts", format="%.1f %%", min_value=0, max_value=100
            )
        },
    )
    unsure = int((~own.certain).sum())
    note = (
        f"{len(own.correct):,} test facts, {study.ranking} ranking; log-linear: the weighted mean "
        "of log-probabilities."
    )
    if unsure:
        note += (
            f" For {unsure} of them, a word outside the {study.shortlist.n_kept} stored candidates "
            "could have the highest score."
        )
    st.caption(note)
    table = pd.DataFrame({"prompt": study.pool.templates, "weight": weights.astype(float)})
    table = table[table["weight"] > 0]
    made = {**choice.made(), "p_at_1": accuracy}
    weights = dict(zip(table["prompt"], table["weight"].round(6), strict=True))
    draw_export(
        "weights",
        lambda: table,
        made,
        "import numpy as np\nfrom lama_core.probes.prompts.spec import find_study\n\n"
        f'study = find_study("{choice.info.id}").relation({choice.study.relation.name!r})\n'
        f"weights = {weights!r}\n"
        "given = [weights.get(template, 0) for template in study.pool.templates]\n"
        "study.judge(np.array(given, np.float32)).correct.mean()",
    )
