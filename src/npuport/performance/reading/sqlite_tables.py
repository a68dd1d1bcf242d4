"""Tables of a SQLite database, of which a release may lack any table or column."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from npuport.findings import say
from npuport.performance.tables import Problem, Rows, Schema, empty

_CHUNK = 50_000  # rows


class Database:
    """A database that is only read."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.path = path
        self._problems = problems
        # Immutable: a folder that cannot be written to, and a database that another program has open, can be read.
        self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def columns(self, table: str) -> set[str]:
        """The columns of a table; none where there is no such table."""
        return {row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def read(self, table: str, wanted: Mapping[str, str | None], schema: Schema, joined: str = "") -> pl.DataFrame:
        """Columns of a table by our names, each given as SQL over its alias ``t``; None is a column that is not there.

        Empty where the table is not there; what cannot be read is a problem.
        """
        rows = Rows(wanted, schema)
        if self.columns(table):
            listed = ", ".join(f'{sql or "NULL"} AS "{name}"' for name, sql in wanted.items())
            try:
                cursor = self._connection.execute(f"SELECT {listed} FROM {table} t {joined}")
                while chunk := cursor.fetchmany(_CHUNK):
                    for row in chunk:
                        rows.add(row)
                    rows.pack()
            except sqlite3.Error as error:
                reason = say("the table {table} cannot be read ({reason})", table=table, reason=error)
                self._problems.append(Problem(self.path, reason))
                return empty({name: schema[name] for name in wanted})
        return rows.frame()

    def value(self, query: str) -> str | None:
        """The first value that a query gives, as text; None where a table or column it names is not there."""
        try:
            row = self._connection.execute(query).fetchone()
        except sqlite3.Error:
            return None
        return None if row is None or row[0] is None else str(row[0])


def text(column: str) -> str:
    """SQL for the text that a column of numbers stands for."""
    return f"(SELECT value FROM STRING_IDS s WHERE s.id = {column})"


def first(columns: set[str], *names: str) -> str | None:
    """SQL for the first of several names that a table has."""
    return next((f"t.{name}" for name in names if name in columns), None)


def first_text(columns: set[str], *names: str) -> str | None:
    """SQL for the text of the first of several names that a table has."""
    found = first(columns, *names)
    return None if found is None else text(found)
