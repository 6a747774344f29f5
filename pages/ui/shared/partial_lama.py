"""A badge on datasets with only part of LAMA, whose numbers aren't comparable with the papers'."""

from collections.abc import Iterable

import streamlit as st

from lama_core.published import lama_shares, partial_lama


def draw_partial(data: str, counts: Iterable[tuple[str, int]], *, note: str = "") -> None:
    """Draw the badge if part of LAMA is missing. note: the first line of the badge's help."""
    shares = lama_shares(data, counts)
    if label := partial_lama(shares):
        st.badge(
            label,
            icon=":material/pie_chart:",
            color="orange",
            help="\n\n".join([note, *(str(one) for one in shares if one.lacks)]).strip(),
        )
