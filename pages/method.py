"""An address of earlier versions: app.py goes on to the screen that shows the same now."""

from pages.ui.shared.router import draw_page

draw_page(lambda: None)
