"""A server on this machine that answers as the model hub does, with faults on demand."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from local_http import SilentHandler, serving

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Repository:
    """A model repository of one commit.

    refuse: file -> HTTP status and error code.
    """

    files: dict[str, bytes]
    commit: str = COMMIT
    references: tuple[str, ...] = ("main",)
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)


@dataclass
class Hub:
    """The server's address, its repositories, and the paths it was asked for."""

    address: str
    repositories: dict[str, Repository]
    asked: list[str] = field(default_factory=list)


class _Handler(SilentHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(path)
        if path.startswith("/api/models/"):
            name, _, revision = path.removeprefix("/api/models/").partition("/revision/")
            if "/tree/" in name:
                name = name.partition("/tree/")[0]
                self._tree(name, with_body)
            else:
                self._info(name, revision or "main", with_body)
            return
        name, _, rest = path.removeprefix("/").partition("/resolve/")
        file = rest.partition("/")[2]
        repository = self.hub.repositories.get(name)
        if repository is None:
            self._fault(404, "RepoNotFound")
        elif file in repository.refuse:
            self._fault(*repository.refuse[file])
        elif file not in repository.files:
            self._fault(404, "EntryNotFound")
        else:
            self._file(repository, file, with_body)

    def _info(self, name: str, revision: str, with_body: bool) -> None:
        repository = self.hub.repositories.get(name)
        if repository is None:
            self._fault(404, "RepoNotFound")
        elif revision not in (*repository.references, repository.commit):
            self._fault(404, "RevisionNotFound")
        else:
            siblings = [
                {"rfilename": file, "size": len(data)} for file, data in repository.files.items()
            ]
            info = {"id": name, "modelId": name, "sha": repository.commit, "siblings": siblings}
            body = json.dumps(info | {"private": False, "tags": [], "downloads": 0}).encode()
            self._send(200, body, {"Content-Type": "application/json"}, with_body)

    def _tree(self, name: str, with_body: bool) -> None:
        files = self.hub.repositories[name].files
        entries = [
            {"type": "file", "path": file, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for file, data in files.items()
        ]
        body = json.dumps(entries).encode()
        self._send(200, body, {"Content-Type": "application/json"}, with_body)

    def _file(self, repository: Repository, file: str, with_body: bool) -> None:
        data, commit = repository.files[file], repository.commit
        headers = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": commit}
        self._send(200, data, headers, with_body)

    def _fault(self, status: int, code: str) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": code} if code else {}
        self._send(status, b"{}", headers, self.command == "GET")

    def _send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@contextmanager
def serve(repositories: dict[str, Repository]) -> Iterator[Hub]:
    hub = Hub("", repositories)
    with serving(_Handler, hub=hub) as hub.address:
        yield hub


def fresh_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is fetched from hubs in a folder, and fetch although the tests are offline."""
    from huggingface_hub import constants

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


def point_to(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
