"""Run torch_npu's own public tests, from a checkout of its sources, on the simulated NPU.

    python tools/run_torch_npu_tests.py CHECKOUT [--only test/nn/test_pooling.py] [-k pooling] [--json FILE]

Every file runs in a process of its own, started as a user's `npuport run --sim -- python -m pytest FILE` would. What
fails is compared with torch_npu_tests_known.csv, which gives the reason of every failure that remains. Exit code 1: a
failure is not listed there, or a listed one does not fail (any more). The checkout must be of the installed version.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import dataclasses
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from isolated_cases import FAILED, Case, run_file

KNOWN = Path(__file__).with_name("torch_npu_tests_known.csv")
FOLDERS = ("test/nn", "test/npu", "test/optim", "test/custom_ops", "test/contrib", "test/distributed")
# What no simulation can have; these do not count in the share. The others do.
OUTSIDE = ("physical device", "graph mode", "profiler data")
# What torch_npu's maintainers leave out on real devices: the list, and what a case says that is on it.
DISABLED, IS_DISABLED = "test/unsupported_test_cases/.pytorch-disabled-tests.json", "this test is disabled now"
REASONS = (*OUTSIDE, "chip", "network", "test itself", "gap")


@dataclasses.dataclass(frozen=True)
class Known:
    """Cases that are known to fail. ``file`` and ``cases`` are literal but for ``*``.

    ``run`` is "no" where trying would harm the machine (tens of gigabytes, a hundred processes); ``cases`` is a name then.

    Reasons: ``chip``, the case needs another chip and does not skip; ``network``, it loads something; ``test itself``,
    it is wrong or needs something that is not installed; ``gap``, the simulation lacks it.
    """

    file: str
    cases: str
    reason: str
    note: str
    run: str = "yes"

    def covers(self, case: Case) -> bool:
        return _matches(self.file, case.file) and _matches(self.cases, case.name)


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def read_known(path: Path) -> list[Known]:
    """Rows of the list.

    Raises:
        SystemExit: a row is not as ``Known`` says.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Known(**row) for row in csv.DictReader(file)]
    for row in rows:
        if row.reason not in REASONS:
            raise SystemExit(f"{path}: the reason {row.reason!r} of {row.file} is none of {', '.join(REASONS)}")
        if row.run not in ("yes", "no"):
            raise SystemExit(f"{path}: {row.run!r} of {row.file} is neither yes nor no")
    return rows


def files_in(checkout: Path, wanted: Sequence[str]) -> list[str]:
    """Test files under the folders or files ``wanted``, relative to the checkout.

    Raises:
        SystemExit: there is no such folder or file.
    """
    found: list[str] = []
    for name in wanted:
        path = checkout / name
        if not path.exists():
            raise SystemExit(f"there is no {path}: CHECKOUT is the root of torch_npu's sources (Ascend/pytorch)")
        paths = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        found += [str(one.relative_to(checkout)) for one in paths]
    return list(dict.fromkeys(found))


def run(checkout: Path, file: str, options: argparse.Namespace, known: Sequence[Known]) -> list[Case]:
    """All cases of one file, as torch_npu's own runner starts it: in its folder `test`."""
    without = [row.cases for row in known if row.run == "no" and row.file == file]
    simulated = [sys.executable, "-m", "npuport", "run", "--sim", "--devices", str(options.devices)]
    test = checkout / "test"
    with tempfile.TemporaryDirectory(prefix="npuport-tests-", ignore_cleanup_errors=True) as scratch:
        variables = {
            "OMP_NUM_THREADS": "1",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),  # python, torchrun
            "PYTHONPATH": str(test),
            "TMPDIR": scratch,
            "DISABLED_TESTS_FILE": str(checkout / DISABLED),
        }
        if file.startswith("test/distributed/"):
            variables |= _distributed(Path(scratch), options.devices)
        launcher = [*simulated, "--chip", options.chip, "--"]
        found = run_file(launcher, checkout, file, test, variables, options.seconds, options.k, without)
    return found + ([] if options.k else [Case(file, name, "not run") for name in without])


def _distributed(scratch: Path, devices: int) -> dict[str, str]:
    """What torch_npu's runner sets for distributed tests."""
    for name in ("barrier", "test_dir"):
        (scratch / name).mkdir()
    world = 1 << (devices.bit_length() - 1)
    return {"TEMP_DIR": str(scratch), "BACKEND": "hccl", "INIT_METHOD": "env://", "WORLD_SIZE": str(world)}


def column_of(case: Case, known: Iterable[Known]) -> str:
    """Where a case is counted in the table."""
    if case.outcome in (*FAILED, "not run"):
        return reason_of(case, known) or "not listed"
    return "disabled" if case.outcome == "skip" and IS_DISABLED in case.text else case.outcome


def reason_of(case: Case, known: Iterable[Known]) -> str:
    """Why a case is expected to fail, or ""."""
    return next((row.reason for row in known if row.covers(case)), "")


def table(cases: Sequence[Case], known: Sequence[Known]) -> str:
    """Outcomes by folder, and the share passed of what a simulation can have."""
    columns = ("pass", "skip", "disabled", *REASONS, "not listed")
    head = ("folder", "cases", *columns, "share passed")
    lines: list[tuple[str, ...]] = [head]
    folders = sorted({_folder(case.file) for case in cases})
    for folder in [*folders, "all"] if len(folders) > 1 else folders:
        counts = Counter(column_of(case, known) for case in cases if folder in ("all", _folder(case.file)))
        counted = counts.total() - sum(counts[column] for column in ("skip", "disabled", *OUTSIDE))
        share = f"{100 * counts['pass'] / counted:.1f} %" if counted else "-"
        lines.append((folder, str(counts.total()), *(str(counts[column]) for column in columns), share))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


def _folder(file: str) -> str:
    return "/".join(Path(file).parts[:2]) if len(Path(file).parts) > 2 else "test"


def stale(cases: Sequence[Case], known: Sequence[Known]) -> list[tuple[Known, str]]:
    """Listed failures that do not fail, of the files that ran, with what is wrong with the row."""
    found = []
    ran = {case.file for case in cases}
    for row in known:
        covered = [case for case in cases if row.covers(case) and case.outcome != "skip"]
        passed = [case.name for case in covered if case.outcome == "pass"]
        if passed:
            found.append((row, f"{len(passed)} pass: {', '.join(passed[:5])}"))
        elif not covered and any(_matches(row.file, file) for file in ran):
            found.append((row, "no case of this name fails"))
    return found


def brief(text: str) -> str:
    """The line of an error text that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:180] if lines else ""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="root of a checkout of torch_npu's sources")
    parser.add_argument("--only", nargs="+", default=FOLDERS, metavar="PATH", help="folders or files of the checkout")
    parser.add_argument(
        "-k", default="", metavar="EXPRESSION", help="cases, as pytest's -k; stale rows are not looked for"
    )
    parser.add_argument("--devices", type=int, default=2, help="simulated devices (default 2)")
    parser.add_argument("--chip", default="Ascend910B3", help="simulated chip (default Ascend910B3)")
    parser.add_argument("--seconds", type=float, default=300, help="limit for one case (default 300)")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every case with its outcome and text")
    return parser.parse_args(argv)


def main() -> int:
    options = arguments()
    checkout, known = options.checkout.resolve(), read_known(KNOWN)
    files = files_in(checkout, options.only)
    cases: list[Case] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, found in enumerate(pool.map(lambda file: run(checkout, file, options, known), files), 1):
            cases += found
            counts = Counter(case.outcome for case in found)
            summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
            print(f"[{number}/{len(files)}] {files[number - 1]}: {summary}", file=sys.stderr, flush=True)
            for case in found:
                if case.outcome in FAILED and not reason_of(case, known):
                    print(f"  {case.outcome} {case.name}: {brief(case.text)}", file=sys.stderr, flush=True)
    if options.json:
        aside = options.json.with_name(options.json.name + ".new")
        rows = [{**dataclasses.asdict(case), "reason": reason_of(case, known)} for case in cases]
        aside.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        aside.replace(options.json)
    print(table(cases, known))
    outdated = [] if options.k else stale(cases, known)
    for row, problem in outdated:
        print(f"{KNOWN.name}: {row.file} {row.cases}: {problem}", file=sys.stderr)
    return int(bool(outdated) or any(case.outcome in FAILED and not reason_of(case, known) for case in cases))


if __name__ == "__main__":
    sys.exit(main())
