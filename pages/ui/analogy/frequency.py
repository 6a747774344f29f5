"""The frequency test of a probe as a table: are wrongly decided pairs rarer than others?"""

import pandas as pd
import streamlit as st

from lama_core.probes.analogy.accuracy_tables import RANDOM_PROBES, SIGNIFICANT
from lama_core.published import published_table
from pages.ui.shared.tables import draw_table


def draw_frequency(lines: pd.DataFrame, probe: str) -> None:
    """Draw the p-values by relation, and how many exceed `SIGNIFICANT`, with the paper's count.

    Args:
        lines: A row per accuracy by relation: who, name, kind, probe and p_value.
        probe: The probe to show; `random` also shows the two probes that it averages.
    """
    probes = ("random", *RANDOM_PROBES) if probe == "random" else (probe,)
    tested = pd.concat(lines[lines["probe"] == one] for one in probes).dropna(subset="p_value")
    if tested.empty:
        st.caption("No relation has two right and two wrong decisions, which the test needs.")
        return
    st.markdown(
        "**Frequency test**: *p* of a Kolmogorov-Smirnov test of word frequency, wrong against "
        "right decisions"
    )
    named = tested.assign(relation=tested["name"], what=tested["who"] + ", " + tested["probe"])
    wide = named.pivot_table("p_value", ["kind", "relation"], "what", sort=False)
    draw_table(wide.reset_index().round(3))
    (paper,) = published_table("rezaee2022", "frequency").rows
    st.caption(
        f"Number of relations with *p* above {SIGNIFICANT}: word frequency has no significant "
        f"effect in them. The most significant relations in the paper: {paper.values[1]}."
    )
    above = [
        (who, one, f"{(values > SIGNIFICANT).sum()} of {len(values)}")
        for (who, one), values in tested.groupby(["who", "probe"], sort=False)["p_value"]
    ]
    published = (f"{paper.labels[0]} (paper, supervised)", "random", paper.values[0])
    columns = ["model", "probe", f"p above {SIGNIFICANT}"]
    draw_table(pd.DataFrame([*above, published], columns=columns))
