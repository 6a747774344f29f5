"""Widgets for the fields of requests, drawn as the fields are declared.

A form draws most fields with `draw_field`; it draws those itself whose options depend on what is
installed.
"""

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from lama_core.requests import Request, RequestField, literal_values, request_fields
from pages.ui.shared import links
from pages.ui.shared.run_form import KEPT
from pages.ui.shared.url_state import BOUND, pick


def fields_of(kind: type[Request]) -> Mapping[str, RequestField]:
    """Return name -> declared field of a request class, in the order of its command's help."""
    return {field.name: field for field in request_fields(kind)}


def draw_field(field: RequestField, key: str, label: str = "", help: str | None = None) -> Any:
    """Draw a choice, a switch or a number; return the value, which the URL holds.

    label, help: Instead of the field's name and its declared help.
    """
    label = label or f"{field.label[:1].upper()}{field.label[1:]}"
    help = help or field.help_text
    names = literal_values(field.kind)
    if names:
        return pick(label, names, key=key, first=field.default, help=help)
    checked, bounds = get_args(field.checked)
    if checked is bool:
        return st.toggle(label, field.default, key=key, bind=BOUND, persist_state=KEPT, help=help)
    links.drop_infinite(key)
    return st.number_input(
        label,
        None if bounds.ge is None else checked(bounds.ge),
        None if bounds.le is None else checked(bounds.le),
        field.default,
        key=key,
        bind=BOUND,
        persist_state=KEPT,
        placeholder="Not set",
        help=help,
    )
