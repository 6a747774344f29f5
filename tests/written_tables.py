"""Tables of texts, written in each form that is read."""

import csv
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

import pandas as pd

Cells = Sequence[Sequence[str]]


def separated(separator: str, end: str) -> Callable[[Cells], bytes]:
    def write(rows: Cells) -> bytes:
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=separator, lineterminator=end).writerows(rows)
        return out.getvalue().encode()

    return write


def tabs(end: str) -> Callable[[Cells], bytes]:
    """As people and scripts write TSV: cells joined, quotes unchanged."""
    return lambda rows: end.join("\t".join(row) for row in [*rows, []]).encode()


def json_lines(rows: Cells) -> bytes:
    header, *others = rows
    return b"".join(
        json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False).encode() + b"\n"
        for row in others
    )


def json_list(indent: int | None) -> Callable[[Cells], bytes]:
    def write(rows: Cells) -> bytes:
        header, *others = rows
        items = [dict(zip(header, row, strict=True)) for row in others]
        return json.dumps(items, ensure_ascii=False, indent=indent).encode()

    return write


def parquet(rows: Cells) -> bytes:
    header, *others = rows
    return pd.DataFrame(others, columns=list(header), dtype=object).to_parquet()


def excel(rows: Cells) -> bytes:
    """A workbook with the cells as inline texts."""
    escaped = {"\ufeff": "&#xFEFF;"}
    lines = "".join(
        "<row>"
        + "".join(
            f'<c t="inlineStr"><is><t xml:space="preserve">{escape(cell, escaped)}</t></is></c>'
            for cell in row
        )
        + "</row>"
        for row in rows
    )
    space = "http://schemas.openxmlformats.org"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{space}/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship '
        f'Id="r1" Type="{space}/officeDocument/2006/relationships/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{space}/spreadsheetml/2006/main" xmlns:r="{space}/'
        'officeDocument/2006/relationships"><sheets><sheet name="a" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{space}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{space}/officeDocument/2006/relationships/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{space}/spreadsheetml/2006/main">'
        f"<sheetData>{lines}</sheetData></worksheet>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


WRITERS: dict[str, Callable[[Cells], bytes]] = {
    "csv": separated(",", "\n"),
    "csv of Windows": separated(",", "\r\n"),
    "semicolons": separated(";", "\n"),
    "quoted tsv": separated("\t", "\r\n"),
    "tsv": tabs("\n"),
    "tsv of old Macs": tabs("\r"),
    "jsonl": json_lines,
    "json": json_list(None),
    "indented json": json_list(2),
    "parquet": parquet,
    "xlsx": excel,
}
