"""`app`: open the web app."""

import os
import socket
import subprocess
import sys
from typing import Annotated

import psutil
from cyclopts import Parameter

from lama_core.cli import commands
from lama_core.errors import UserError
from lama_core.paths import APP_FILE, SERVER_FILE

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def open_app(
    *,
    port: Annotated[
        int | None, Parameter(help="Port of the app, from 1 to 65535. Default: 8501.")
    ] = None,
    address: Annotated[
        str | None,
        Parameter(
            help="Network address that the app listens on. Default: localhost; with --public, all."
        ),
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
    """Open the web app in the browser; stop it with Ctrl+C.

    The app answers under the names in LAMA_HOSTS, separated by commas, and under localhost; with
    --public also under this machine's name and addresses.
    """
    if port is not None and not 1 <= port <= 65535:
        raise UserError(f"Invalid --port {port}: choose 1 to 65535.")
    if not APP_FILE.is_file():
        raise UserError(f"The app's files are missing: {APP_FILE}. Reinstall lama-explorer.")
    # Streamlit also reads .streamlit/config.toml next to the app's file.
    words = [sys.executable, str(SERVER_FILE), "run", str(APP_FILE)]
    if port is not None:
        words += ["--server.port", str(port)]
    if public:
        os.environ["LAMA_PUBLIC"] = "1"
        address = address or "0.0.0.0"
    if address:
        words += ["--server.address", address]
    # SPACE_HOST is set on Hugging Face Spaces.
    hosts = os.environ.get("LAMA_HOSTS") or os.environ.get("SPACE_HOST", "")
    named = [name.strip() for name in hosts.split(",") if name.strip()]
    for name in (*LOCAL_HOSTS, *named, *(_own_hosts() if public else ())):
        words += ["--server.allowedHosts", name]
    if public:
        words += ["--browser.serverAddress", named[0] if named else socket.gethostname()]
    _become(words)


def _become(words: list[str]) -> None:
    """Run a Python command instead of this one."""
    if sys.platform == "win32":  # there, `execv` would return to the command prompt at once
        sys.exit(subprocess.call(words))
    os.execv(sys.executable, words)


def _own_hosts() -> list[str]:
    """Return this machine's names and network addresses."""
    families = (socket.AF_INET, socket.AF_INET6)
    addresses = {
        one.address.partition("%")[0]
        for found in psutil.net_if_addrs().values()
        for one in found
        if one.family in families
    }
    return [socket.gethostname(), socket.getfqdn(), *sorted(addresses)]


app = commands.make_group("app", open_app, "app --port 8600")
