"""The frequency test of a probe, as a table: are pairs that are got wrong rarer?"""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lama_core.papers.published import published_table
from lama_core.probes.analogy.accuracy_tables import (
    RANDOM,
    SIGNIFICANT,
    Accuracy,
    frequency_summary,
)


def draw_frequency(lines: Sequence[Accuracy], names: dict[str, str], probe: str) -> None:
    """P by relation, of `random` also of each of its halves; summed up beside the paper's.

    lines: of all probes, by relation. names: run id -> what its lines are called.
    """
    shown = ("random", *RANDOM) if probe == "random" else (probe,)
    tested: dict[tuple[str, str], list[Accuracy]] = {}
    for who in dict.fromkeys(names.values()):
        for one in shown:
            tested[who, one] = [
                line
                for line in lines
                if line.probe == one
                and names[line.run.split(", ")[0]] == who
                and line.p_value is not None
            ]
    records = [
        {"kind": line.kind, "relation": line.name, "what": f"{who}, {one}", "p": line.p_value}
        for (who, one), of in tested.items()
        for line in of
    ]
    if not records:
        st.caption("No relation has two right and two wrong decisions: no frequency test.")
        return
    st.markdown("**Frequency test**: *p*, Kolmogorov-Smirnov, of right against wrong decisions")
    wide = pd.DataFrame(records).pivot_table(
        index=["kind", "relation"], columns="what", values="p", sort=False
    )
    st.dataframe(wide.reset_index().round(3), hide_index=True)
    (paper,) = published_table("rezaee2022", "frequency").rows
    above = f"p above {SIGNIFICANT}"
    summed = [
        {"model": who, "probe": one, above: f"{n_above} of {n}"}
        for (who, one), of in tested.items()
        for n, n_above in (frequency_summary(of),)
        if n
    ]
    theirs = {
        "model": f"{paper.labels[0]} (paper, supervised)",
        "probe": "random",
        above: paper.values[0],
    }
    st.caption(
        f"Relations with *p* above {SIGNIFICANT}, in which frequency plays no significant part. "
        f"Most significant in the paper: {paper.values[1]}."
    )
    st.dataframe(pd.DataFrame([*summed, theirs])[["model", "probe", above]], hide_index=True)
