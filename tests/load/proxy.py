"""Debian's nginx with the project's configuration, in front of a running app."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from until import until

CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf"
NAME = "lama.example.org"


def find_nginx() -> str | None:
    """The path of nginx; None if it isn't installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def unverified() -> ssl.SSLContext:
    """TLS for clients that accept this nginx's own certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def running_nginx(folder: Path, app: str) -> Iterator[int]:
    """Start nginx in front of the app; yield its port for TLS. app: its URL, also with a path."""
    nginx, port = find_nginx(), free_port()
    if nginx is None:
        raise RuntimeError("no nginx: install Debian's nginx")
    command = [nginx, "-c", str(_configure(folder, app, port)), "-p", str(folder)]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or _listens(port))
        if process.poll() is not None:
            raise RuntimeError(f"nginx ended with status {process.returncode}")
        yield port
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 90):
        return True
    return False


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _configure(folder: Path, app: str, port: int) -> Path:
    """The project's configuration with these ports, and a certificate and folders of its own."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         f"/CN={NAME}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    text = CONFIGURATION.read_text(encoding="utf-8")
    replaced = {
        "http://127.0.0.1:8501": f"http://127.0.0.1:{urlsplit(app).port}",
        f"/etc/ssl/certs/{NAME}.pem": str(certificate),
        f"/etc/ssl/private/{NAME}.key": str(key),
        "listen 443": f"listen 127.0.0.1:{port}",
        "listen 80": f"listen 127.0.0.1:{free_port()}",
        f'"https://{NAME}" 0': f'"https://{NAME}:{port}" 0',
    }
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    temporary = "".join(
        f"{kind}_temp_path {folder / kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off;\npid {folder / 'pid'};\nerror_log {folder / 'error.log'};\n"
        + ("user root;\n" if os.geteuid() == 0 else "")
        + "events {}\nhttp {\naccess_log off;\n"
        + f"include /etc/nginx/mime.types;\n{temporary}{text}}}\n",
        encoding="utf-8",
    )
    return whole
