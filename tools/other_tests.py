"""Run the tests of another project, from a checkout of its sources, on the simulated NPU.

Every file runs in a process of its own, started as a user's `npuport run --sim -- python -m pytest FILE` would. What
fails is compared with the project's list of known failures, which gives the reason of every failure that remains. Exit
code 1: a failure is not listed there, or a listed one does not fail (any more).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from isolated_cases import Case, run_file
from known_failures import Known, is_unexpected, read_known, reason_of, stale, table


@dataclasses.dataclass(frozen=True)
class Project:
    """Whose tests, and how they want to be started.

    ``variables``: from the checkout, a file in it, an empty folder and the number of devices to environment variables.
    ``folder``: where tests start, relative to the checkout. ``outside``: reasons that do not count in the share.
    ``options``: for pytest.
    """

    sources: str  # what the checkout is of
    folders: tuple[str, ...]
    known: Path
    folder: str
    outside: tuple[str, ...]
    options: tuple[str, ...]
    variables: Callable[[Path, str, Path, int], Mapping[str, str]]


def files_in(checkout: Path, wanted: Sequence[str], sources: str) -> list[str]:
    """Test files under the folders or files ``wanted``, relative to the checkout.

    Raises:
        SystemExit: there is no such folder or file.
    """
    found: list[str] = []
    for name in wanted:
        path = checkout / name
        if not path.exists():
            raise SystemExit(f"there is no {path}: CHECKOUT is the root of {sources}")
        paths = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        found += [str(one.relative_to(checkout)) for one in paths]
    return list(dict.fromkeys(found))


def run(project: Project, checkout: Path, file: str, options: argparse.Namespace, known: Sequence[Known]) -> list[Case]:
    """All cases of one file."""
    without = [row.cases for row in known if row.run == "no" and row.file == file]
    simulated = [sys.executable, "-m", "npuport", "run", "--sim", "--devices", str(options.devices)]
    with tempfile.TemporaryDirectory(prefix="npuport-tests-", ignore_cleanup_errors=True) as scratch:
        variables = {
            "OMP_NUM_THREADS": "1",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),  # python, torchrun
            "TMPDIR": scratch,
            **project.variables(checkout, file, Path(scratch), options.devices),
        }
        launcher = [*simulated, "--chip", options.chip, "--"]
        cwd = checkout / project.folder
        found = run_file(launcher, checkout, file, cwd, variables, options.seconds, options.k, without, project.options)
    return found + ([] if options.k else [Case(file, name, "not run") for name in without])


def arguments(project: Project, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, the same for every project."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help=f"root of a checkout of {project.sources}")
    parser.add_argument(
        "--only", nargs="+", default=project.folders, metavar="PATH", help="folders or files of the checkout"
    )
    parser.add_argument(
        "-k", default="", metavar="EXPRESSION", help="cases, as pytest's -k; stale rows are not looked for"
    )
    parser.add_argument("--devices", type=int, default=2, help="simulated devices (default 2)")
    parser.add_argument("--chip", default="Ascend910B3", help="simulated chip (default Ascend910B3)")
    parser.add_argument("--seconds", type=float, default=300, help="limit for one case (default 300)")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every case with its outcome and text")
    parser.add_argument(
        "--resume", action="store_true", help="count the cases that the FILE of --json has, and run only other files"
    )
    options = parser.parse_args(argv)
    if options.resume and not options.json:
        parser.error("--resume needs --json FILE, where an earlier run wrote its cases")
    return options


def main(project: Project) -> int:
    """Run, print the table, and return the exit code."""
    options = arguments(project)
    checkout, known = options.checkout.resolve(), read_known(project.known)
    cases = _read(options.json) if options.resume and options.json.exists() else []
    ran = {case.file for case in cases}
    files = [file for file in files_in(checkout, options.only, project.sources) if file not in ran]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, found in enumerate(pool.map(lambda file: run(project, checkout, file, options, known), files), 1):
            cases += found
            counts = Counter(case.outcome for case in found)
            summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
            print(f"[{number}/{len(files)}] {files[number - 1]}: {summary}", file=sys.stderr, flush=True)
            for case in found:
                if is_unexpected(case, known):
                    print(f"  {case.outcome} {case.name}: {_brief(case.text)}", file=sys.stderr, flush=True)
            if options.json:
                _write(options.json, [{**dataclasses.asdict(case), "reason": reason_of(case, known)} for case in cases])
    print(table(cases, known, project.outside))
    outdated = [] if options.k else stale(cases, known)
    for row, problem in outdated:
        print(f"{project.known.name}: {row.file} {row.cases}: {problem}", file=sys.stderr)
    return int(bool(outdated) or any(is_unexpected(case, known) for case in cases))


def _brief(text: str) -> str:
    """The line of an error text that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:180] if lines else ""


def _read(path: Path) -> list[Case]:
    names = {field.name for field in dataclasses.fields(Case)}
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [Case(**{name: value for name, value in row.items() if name in names}) for row in rows]
    except (ValueError, TypeError, AttributeError) as error:
        raise SystemExit(f"{path} is not what --json writes ({error}); without --resume it is written anew") from error


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    aside = path.with_name(path.name + ".new")
    aside.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)
