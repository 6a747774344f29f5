"""A badge on data that hold a part of LAMA only, with which published numbers compare ill."""

from collections.abc import Iterable

import streamlit as st

from lama_core.papers.published import lama_shares, partial_lama


def draw_partial(data: str, counts: Iterable[tuple[str, int]], *, note: str = "") -> None:
    """The badge, where something of LAMA is missing; arguments as `lama_shares`.

    note: what follows from it.
    """
    shares = lama_shares(data, counts)
    said = partial_lama(shares)
    if said:
        st.badge(
            said,
            icon=":material/pie_chart:",
            color="orange",
            help="\n\n".join([note, *(str(one) for one in shares if one.lacks)]).strip(),
        )
