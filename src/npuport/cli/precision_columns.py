"""The table of `msprobe compare`, written by `npuport precision compare --msprobe`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.cli.shared import progress, write_aside
from npuport.report.language import translate

if TYPE_CHECKING:
    from npuport.precision.msprobe.reading import Dump


def write_columns(pairs: Mapping[str, tuple[Path, Path]], file: Path) -> None:
    """Write the rows of each pair (reference, candidate); of several pairs each to a file of its own."""
    for name, (reference, candidate) in pairs.items():
        place = file if len(pairs) == 1 else file.with_stem(f"{file.stem}_{name.replace(', ', '_').replace(' ', '')}")
        with _as_dump(reference) as golden, _as_dump(candidate) as target:
            write_aside(place, _table(golden, target).encode())


def _table(golden: Dump, target: Dump) -> str:
    from npuport.precision.msprobe.columns import COLUMNS, compare_in_columns, mode_of
    from npuport.precision.msprobe.items import items_of

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS[mode_of(target)], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    total = sum(map(len, items_of(target).values()))
    with progress(total, translate("comparing")) as bar:
        advance: Callable[[int], None] = bar if bar is not None else (lambda _: None)
        writer.writerows(compare_in_columns(target, golden, advance))
    return text.getvalue()


@contextmanager
def _as_dump(file: Path) -> Iterator[Dump]:
    """A dump of msprobe as it is; a step of ours as one, for as long as it is needed."""
    import tempfile

    from npuport.precision.msprobe.reading import read_dump
    from npuport.precision.msprobe.writing import write_dump
    from npuport.precision.operators.calls import read_step

    if file.suffix == ".json":
        yield read_dump(file)
        return
    with tempfile.TemporaryDirectory(prefix="npuport-") as folder:
        yield read_dump(write_dump(read_step(file), Path(folder)))
