"""Read which dtypes CANN's operators take from the documents beside their sources (aclnn*.md of ops-math, ops-nn, …).

Each document has the C prototype of one or more functions, a table with one row for each parameter (its dtypes among
the columns), exceptions for some products below it, and the cases in which the function fails (161002).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

# The documents' words -> torch's. What torch has no name for (FLOAT8 variants and the like) is left out.
DTYPES = {
    "FLOAT": "float32", "FLOAT32": "float32", "FLOAT16": "float16", "BFLOAT16": "bfloat16", "BF16": "bfloat16",
    "DOUBLE": "float64", "FLOAT64": "float64", "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "INT": "int32", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "BOOL": "bool",
    "COMPLEX32": "complex32", "COMPLEX64": "complex64", "COMPLEX128": "complex128",
}  # fmt: skip

PRODUCTS = ("910", "310p", "310b", "910b", "A3", "950")


@dataclass
class Parameter:
    """One argument of a function, in C order. ``accepts``: as listed; None where the document names no dtypes."""

    name: str
    type: str
    accepts: tuple[str, ...] | None = None


@dataclass
class Function:
    """``aclnnXGetWorkspaceSize``. ``refuses`` is true where the document says that other dtypes are an error."""

    name: str
    parameters: list[Parameter]
    refuses: bool
    without: dict[str, set[str]] = field(default_factory=dict)
    """Product -> dtypes that its exceptions take away from every parameter."""


def read(folders: list[Path]) -> dict[str, Function]:
    """Every function of the documents under ``folders``, by its name without GetWorkspaceSize."""
    found: dict[str, Function] = {}
    for folder in folders:
        for path in sorted(folder.rglob("aclnn*.md")):
            if "experimental" not in path.parts:
                for function in _functions(path.read_text(encoding="utf-8")):
                    found.setdefault(function.name, function)
    return found


def _functions(text: str) -> Iterator[Function]:
    sections = re.split(r"^## (?=aclnn\w+GetWorkspaceSize)", text, flags=re.MULTILINE)
    described = {section.partition("GetWorkspaceSize")[0]: section for section in sections[1:]}
    for name, arguments in re.findall(r"aclnnStatus\s+(aclnn\w+?)GetWorkspaceSize\s*\(([^)]*)\)", text):
        section = described.get(name)
        if section is None:
            continue
        section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
        rows = _rows(section.partition("返回值")[0])
        if not re.fullmatch(r"[\w\s*,\[\]]*", arguments):
            continue  # one document was published in the middle of a merge
        parameters = [_parameter(argument, rows) for argument in arguments.split(",")]
        yield Function(name, parameters, _refuses(section), _exceptions(section.partition("返回值")[0]))


def _parameter(declaration: str, rows: dict[str, tuple[str, ...] | None]) -> Parameter:
    match = re.fullmatch(r"\s*(.*?)\s*\b(\w+)\s*(?:\[\])?\s*", declaration, flags=re.DOTALL)
    assert match, declaration
    kind = re.sub(r"\bconst\b|\s", "", match[1])
    return Parameter(match[2], kind, rows.get(match[2]) if kind in ("aclTensor*", "aclTensorList*") else None)


def _refuses(section: str) -> bool:
    errors = section.partition("返回值")[2]
    return bool(re.search(r"(数据类型|dtype)[^<\n]{0,40}不在支持的?范围", errors))


def _rows(text: str) -> dict[str, tuple[str, ...] | None]:
    """Parameter -> its dtypes, from the first HTML table with a column of dtypes."""
    reader = _TableReader()
    reader.feed(text)
    for table in reader.tables:
        head = [cell.strip() for cell in table[0]]
        if "数据类型" not in head:
            continue
        column = head.index("数据类型")
        return {re.split(r"[（(\s]", row[0].strip())[0]: _dtypes(row[column]) for row in table[1:] if len(row) > column}
    return {}


def _dtypes(cell: str) -> tuple[str, ...] | None:
    words = re.findall(r"[A-Z][A-Z0-9_]*", cell)
    return tuple(dict.fromkeys(DTYPES[word] for word in words if word in DTYPES)) or None


def _exceptions(text: str) -> dict[str, set[str]]:
    """What "… 不支持BFLOAT16" in the notes for some products takes away."""
    without: dict[str, set[str]] = {}
    for products, note in re.findall(r'<!-- npu="([^"]*)" id\d+ -->(.*?)<!-- end id\d+ -->', text, flags=re.DOTALL):
        for sentence in re.split(r"[；;。\n]", note):
            if "数据类型" in sentence and "不支持" in sentence and not re.search(r"[时当若]|=", sentence):
                refused = _dtypes(sentence.partition("不支持")[2]) or ()
                for product in products.split(","):
                    without.setdefault(product.strip(), set()).update(refused)
    return without


class _TableReader(HTMLParser):
    """Tables as lists of rows of texts; a cell that spans rows stands in each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._span = 1
        self._pending: dict[int, tuple[str, int]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
            self._pending = {}
        elif tag == "tr" and self.tables:
            self._row = []
        elif tag in ("td", "th") and self._row is not None:
            self._fill()
            self._cell, self._span = [], int(dict(attrs).get("rowspan") or 1)
        elif tag in ("br", "li") and self._cell is not None:
            self._cell.append(" ")

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._row is not None and self._cell is not None:
            text = "".join(self._cell)
            if self._span > 1:
                self._pending[len(self._row)] = (text, self._span - 1)
            self._row.append(text)
            self._cell = None
        elif tag == "tr" and self._row is not None:
            self._fill()
            if self._row:
                self.tables[-1].append(self._row)
            self._row = None

    def _fill(self) -> None:
        assert self._row is not None
        while len(self._row) in self._pending:
            text, left = self._pending.pop(len(self._row))
            if left > 1:
                self._pending[len(self._row)] = (text, left - 1)
            self._row.append(text)
