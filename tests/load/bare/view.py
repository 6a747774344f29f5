"""The smallest page with a chart, or a table of answers (`?tab=`): the peer of `bench views`."""

import streamlit as st

ROWS = [{"model": f"model {number}", "share": number / 20} for number in range(1, 6)]
if "tab" in st.query_params:
    cells = "".join(f"<tr><td>{row['model']}</td><td>{row['share']}</td></tr>" for row in ROWS)
    st.html(f"<table class=lx>{cells}</table>")
else:
    channels = {"x": {"field": "share", "type": "quantitative"}, "y": {"field": "model"}}
    chart = {"data": {"values": ROWS}, "mark": "bar", "encoding": channels}
    clicked = [{"name": "clicked", "select": {"type": "point", "fields": ["model"]}}]
    st.vega_lite_chart(
        None, chart | {"params": clicked}, on_select="rerun", selection_mode="clicked"
    )
