"""Archives from elsewhere: what is safe is unpacked, what isn't leaves nothing behind."""

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from lama_core.downloads import archive
from lama_core.downloads.archive import unpack
from lama_core.errors import UserError

MB = 1 << 20


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return path


def make_tar(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for member, content in members:
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return path


def refused(archive: Path, folder: Path, match: str, *, max_bytes: int = MB) -> None:
    """Assert that `archive` is refused for that reason and nothing is left of it."""
    with pytest.raises(UserError, match=match):
        unpack(archive, folder, max_bytes=max_bytes)
    assert not folder.exists()


def test_a_sound_archive_is_unpacked_whole(tmp_path: Path) -> None:
    zipped = make_zip(tmp_path / "a.zip", {"data/TREx/P1.jsonl": b"x", "data/": b""})
    unpack(zipped, tmp_path / "zip", max_bytes=MB)
    assert (tmp_path / "zip" / "data" / "TREx" / "P1.jsonl").read_bytes() == b"x"
    tarred = make_tar(tmp_path / "a.tar.gz", [(tarfile.TarInfo("b/c.txt"), b"yz")])
    unpack(tarred, tmp_path / "tar", max_bytes=MB)
    assert (tmp_path / "tar" / "b" / "c.txt").read_bytes() == b"yz"


@pytest.mark.parametrize(
    "name", ["../out.txt", "/etc/out.txt", "a/../../out.txt", "..\\out.txt", "C:/out.txt"]
)
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    refused(make_zip(tmp_path / "a.zip", {name: b"x"}), tmp_path / "out", "unsafe path")
    refused(
        make_tar(tmp_path / "a.tgz", [(tarfile.TarInfo(name), b"x")]),
        tmp_path / "out",
        "unsafe path",
    )
    assert not (tmp_path / "out.txt").exists()


def test_a_tar_bomb_is_stopped_while_it_unpacks(tmp_path: Path) -> None:
    members = [(tarfile.TarInfo(f"{i}.txt"), b"\0" * MB) for i in range(4)]
    bomb = make_tar(tmp_path / "a.tar.gz", members)
    refused(bomb, tmp_path / "out", "unpacks to more than 2,097,152 bytes", max_bytes=2 * MB)


def test_a_zip_that_declares_too_little_is_counted_as_it_is_written(tmp_path: Path) -> None:
    bomb = make_zip(tmp_path / "a.zip", {"a.txt": b"\0" * 20 * MB})
    content = bytearray(bomb.read_bytes())
    true_size = (20 * MB).to_bytes(4, "little")
    lie = (10).to_bytes(4, "little")
    assert content.count(true_size) >= 1
    bomb.write_bytes(bytes(content).replace(true_size, lie))
    refused(bomb, tmp_path / "out", "can't be unpacked|unpacks to more")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/passwd"
    archive = make_tar(tmp_path / "a.tar.gz", [(member, b"")])
    refused(archive, tmp_path / "out", "link or device")


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        member = zipfile.ZipInfo("link")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(member, "/etc/passwd")
    refused(archive, tmp_path / "out", "link or device")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz", "a.tar"])
@pytest.mark.parametrize("keep", [0, 10, 200])
def test_a_truncated_archive_is_said_and_leaves_nothing(
    tmp_path: Path, name: str, keep: int
) -> None:
    import os

    archive = tmp_path / name
    content = os.urandom(4000)
    if name.endswith(".zip"):
        make_zip(archive, {"a.bin": content})
    else:
        mode = {"a.tar.gz": "w:gz", "a.tar.xz": "w:xz", "a.tar": "w:"}[name]
        with tarfile.open(archive, mode) as opened:  # type: ignore[call-overload]
            member = tarfile.TarInfo("a.bin")
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    archive.write_bytes(archive.read_bytes()[:keep])
    refused(archive, tmp_path / "out", "can't be unpacked: it is broken or truncated")


def test_archives_within_an_archive_share_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = make_zip(tmp_path / "inner.zip", {"a.txt": b"x" * (MB // 3)}).read_bytes()
    members = {f"{n}/inner.zip": inner for n in range(2)}
    unpack(make_zip(tmp_path / "two.zip", members), tmp_path / "out", max_bytes=MB)
    assert (tmp_path / "out" / "1" / "a.txt").stat().st_size == MB // 3
    members = {f"{n}/inner.zip": inner for n in range(4)}
    four = make_zip(tmp_path / "four.zip", members)
    refused(four, tmp_path / "more", r"four\.zip unpacks to more than 1,048,576 bytes")
    # Four folders with an archive each, and a file in each archive.
    monkeypatch.setattr(archive, "MAX_MEMBERS", 4 + 4 + 4)
    unpack(four, tmp_path / "twelve", max_bytes=2 * MB)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 11)
    refused(four, tmp_path / "more", r"four\.zip has more than 11 files", max_bytes=2 * MB)


@pytest.mark.parametrize(("depth", "sound"), [(3, True), (4, False)])
def test_archives_nest_three_deep(tmp_path: Path, depth: int, sound: bool) -> None:
    content = b"x"
    name = "a.txt"
    for level in range(depth + 1):
        content = make_zip(tmp_path / "packed.zip", {name: content}).read_bytes()
        name = f"level{level}.zip"
    if sound:
        unpack(tmp_path / "packed.zip", tmp_path / "out", max_bytes=MB)
        assert (tmp_path / "out" / "a.txt").read_bytes() == b"x"
    else:
        refused(tmp_path / "packed.zip", tmp_path / "out", "levels of nested archives")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("caf\udce9.txt", r"contains the name 'caf\\udce9\.txt', which is not UTF-8 text"),
        ("n" * 256, "longer than 255 bytes"),
        ("d/" * 40 + "x", "more than 32 folders deep"),
    ],
)
def test_names_that_no_folder_should_have_are_refused(
    tmp_path: Path, name: str, match: str
) -> None:
    archive = make_tar(tmp_path / "a.tgz", [(tarfile.TarInfo(name), b"x")])
    refused(archive, tmp_path / "out", match)


def test_a_header_that_states_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 3 << 30
    (tmp_path / "a.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT))
    refused(tmp_path / "a.tar", tmp_path / "out", "likely malicious")


def test_a_pipe_in_place_of_an_archive_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.zip")
    refused(tmp_path / "a.zip", tmp_path / "out", "not a regular file")
