"""`app`: open the web app."""

import os
import sys
from typing import Annotated

from cyclopts import App, Parameter

from lama_core.errors import UserError
from lama_core.paths import APP_FILE


def open_app(
    *,
    port: Annotated[
        int | None, Parameter(help="Port of the app, from 1 to 65535. Default: 8501.")
    ] = None,
    public: Annotated[
        bool,
        Parameter(
            help="Accept visitors from other machines; every visitor has anonymous rights.",
            negative="",
            show_default=False,
        ),
    ] = False,
) -> None:
    """Open the web app in the browser; stop it with Ctrl+C."""
    if port is not None and not 1 <= port <= 65535:
        raise UserError(f"Invalid --port {port}: choose 1 to 65535.")
    if not APP_FILE.is_file():
        raise UserError(f"The app's files are missing: {APP_FILE}. Reinstall lama-explorer.")
    # Streamlit also reads .streamlit/config.toml next to the app's file.
    words = [sys.executable, "-m", "streamlit", "run", str(APP_FILE)]
    if port is not None:
        words += ["--server.port", str(port)]
    if public:
        os.environ["LAMA_PUBLIC"] = "1"
        words += ["--server.address", "0.0.0.0"]
    os.execv(sys.executable, words)


app = App(
    name="app",
    help_epilogue="Example: lama-explorer app --port 8600",
    help_flags=["--help", "-h"],
    version_flags=[],
)
app.default(open_app)
