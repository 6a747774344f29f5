"""The frequency test of a probe as a table: are wrongly decided pairs rarer than others?"""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lama_core.probes.analogy.accuracy_tables import (
    RANDOM_PROBES,
    SIGNIFICANT,
    ProbeAccuracy,
    frequency_summary,
)
from lama_core.published import published_table
from pages.ui.shared.tables import draw_table


def draw_frequency(lines: Sequence[ProbeAccuracy], names: dict[str, str], probe: str) -> None:
    """Draw the p-values by relation, and how many exceed `SIGNIFICANT`, with the paper's count.

    Args:
        lines: Accuracies of all probes, by relation.
        names: Run id -> the run's name in tables.
        probe: The probe to show; `random` also shows the two probes that it averages.
    """
    probes = ("random", *RANDOM_PROBES) if probe == "random" else (probe,)
    tested = [line for line in lines if line.p_value is not None]
    by_test = {
        (name, tested_probe): [
            line
            for line in tested
            if line.probe == tested_probe and names[line.run.split(", ")[0]] == name
        ]
        for name in dict.fromkeys(names.values())
        for tested_probe in probes
    }
    records = [
        {"kind": line.kind, "relation": line.name, "what": f"{name}, {probe}", "p": line.p_value}
        for (name, probe), found in by_test.items()
        for line in found
    ]
    if not records:
        st.caption("No relation has two right and two wrong decisions, which the test needs.")
        return
    st.markdown(
        "**Frequency test**: *p* of a Kolmogorov-Smirnov test of word frequency, wrong against "
        "right decisions"
    )
    wide = pd.DataFrame(records).pivot_table(
        index=["kind", "relation"], columns="what", values="p", sort=False
    )
    draw_table(wide.reset_index().round(3))
    (paper,) = published_table("rezaee2022", "frequency").rows
    above = f"p above {SIGNIFICANT}"
    summaries = [
        {"model": name, "probe": probe, above: f"{n_above} of {n}"}
        for (name, probe), found in by_test.items()
        for n, n_above in (frequency_summary(found),)
        if n
    ]
    published = {
        "model": f"{paper.labels[0]} (paper, supervised)",
        "probe": "random",
        above: paper.values[0],
    }
    st.caption(
        f"Number of relations with *p* above {SIGNIFICANT}: word frequency has no significant "
        f"effect in them. The most significant relations in the paper: {paper.values[1]}."
    )
    draw_table(pd.DataFrame([*summaries, published]))
