"""Poll: a question to a class; the lecturer's page, or that of the participants."""

import streamlit as st

from pages.ui.poll import lecturer, participant
from pages.ui.poll.rooms import ROOMS
from pages.ui.router import is_routed
from pages.ui.shared import links, visitors
from pages.ui.shared.messages import errors_shown, show_error, show_note


def main() -> None:
    """Draw the page of the poll that the URL names, else a field for its code."""
    code, secret = (st.query_params.get(name, "") for name in ("room", "key"))
    with errors_shown():
        room = None
        if code:
            me, address = participant.sent_id(), visitors.address()
            room = ROOMS.find(code, address, participant=me, secret=secret)
        if room is None:
            participant.hide_menu()
            if code:
                links.keep_params()  # a reload says the same
                show_note(
                    "This poll has ended. Thank you."
                    if ROOMS.has_ended(code)
                    else "This poll has ended, or its room code is wrong."
                )
            participant.draw_door()
        elif not secret:
            participant.draw(room)
        elif room.is_lecturer(secret):
            lecturer.draw(room)
        else:
            show_error("This link doesn't open this poll for its lecturer.")


if is_routed():
    main()
