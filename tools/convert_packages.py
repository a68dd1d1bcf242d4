"""Convert unpacked source distributions, and check what comes out.

    python tools/convert_packages.py FOLDER --target agnostic [--only timm accelerate] [--imports cpu|sim] [--json FILE]

FOLDER holds one directory for each source distribution (`tar xf NAME.tar.gz`). Of each, converted into a scratch
folder, this checks that no rule failed, that every output compiles, that a second run changes nothing, that no CUDA
reference is unexplained, and that untouched files are the same byte for byte. With --imports, every module of the
package is imported before and after, each time in one process on the CPU, or on the simulated NPU: what could be
imported before must still be, and no name may be lost. What fails before is no fault of the conversion; the more of a
package's dependencies are installed, the more is tried. Exit code 1: a check failed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from npuport.conversion.rounds import Conversion, convert_files
from npuport.conversion.tree import write_copy
from npuport.rules.settings import TARGETS, Settings
from npuport.source.files import FileKind, Tree, read_tree

_WALK = Path(__file__).with_name("import_walk.py")
_NOT_PACKAGES = frozenset({"tests", "test", "docs", "examples", "benchmarks", "scripts", "bin", "requirements"})
_SPECIAL = frozenset({"__main__", "conftest", "setup"})  # modules that are run, not imported
_COMPILED = ("mmcv._ext",)  # built from C++ with the package; nothing of it is called by an import

_COLUMNS = (
    "Package", "Target", "Python files", "Changed", "Edits", "Left", "Faults", "Modules",
    "Imported before", "After", "Lost",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Imports:
    """How the modules of a package import before and after.

    ``lost``: module and error, or module and missing names. ``never``: module and error of those that failed before.
    """

    modules: int
    before: int
    after: int
    lost: tuple[tuple[str, str], ...]
    never: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Result:
    """What the checks found. The tuples name the files, or words, that fail a check."""

    name: str
    target: str
    python_files: int
    changed: int
    edits: int
    left: int
    failures: tuple[str, ...]
    uncompilable: tuple[str, ...]
    unsettled: tuple[str, ...]
    unexplained: tuple[str, ...]
    differing: tuple[str, ...]
    seconds: float
    imports: Imports | None = None

    @property
    def faults(self) -> list[str]:
        """Every check that failed, in words."""
        found = [f"{what}: {one}" for what, ones in self._checks() for one in ones]
        return found + ([f"import of {module}: {why}" for module, why in self.imports.lost] if self.imports else [])

    def _checks(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "failure", self.failures
        yield "does not compile", self.uncompilable
        yield "changed by a second run", self.unsettled
        yield "unexplained", self.unexplained
        yield "untouched, yet not the same", self.differing


def convert_package(root: Path, out: Path, target: str) -> Result:
    """Convert the tree ``root`` into ``out``, and check everything but imports."""
    settings, start = Settings(target=target), time.process_time()
    tree = read_tree(root)
    conversion = convert_files(tree.files, settings, jobs=1)
    seconds = time.process_time() - start
    write_copy(tree, conversion, out, {})
    again = convert_files(read_tree(out).files, settings, jobs=1)
    return Result(
        name=root.name,
        target=target,
        python_files=sum(file.kind is FileKind.PYTHON for file in tree.files),
        changed=len(conversion.changed),
        edits=conversion.edit_count,
        left=len(conversion.left_to_do),
        failures=tuple(f"{one.path} {one.rule} {one.message}" for one in conversion.failures),
        uncompilable=tuple(uncompilable(conversion)),
        unsettled=tuple(file.source.path for file in again.changed),
        unexplained=tuple(f"{one} {one.word}" for one in conversion.unexplained),
        differing=tuple(differing(tree, conversion, out)),
        seconds=round(seconds, 1),
    )


def uncompilable(conversion: Conversion) -> Iterator[str]:
    """Files that compile before and not after."""
    for file in conversion.changed:
        if file.source.kind is FileKind.PYTHON and _compiles(file.source.text) and not _compiles(file.text):
            yield file.source.path


def _compiles(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "converted", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def differing(tree: Tree, conversion: Conversion, out: Path) -> Iterator[str]:
    """Files that the conversion did not change and whose bytes differ all the same, or that are missing."""
    touched = {file.source.path for file in conversion.changed}
    for path in sorted({file.path for file in tree.files} | set(tree.others)):
        copy = out / path
        if path not in touched and not (copy.is_file() and copy.read_bytes() == (tree.base / path).read_bytes()):
            yield path


def modules_of(root: Path) -> tuple[Path, list[str]]:
    """The folder to import from, and the dotted names of all modules of the packages in it, in order."""
    base = root / "src" if (root / "src").is_dir() else root
    tops = [one for one in sorted(base.iterdir()) if one.name not in _NOT_PACKAGES and _is_package(one)]
    files = [file for top in tops for file in sorted(top.rglob("*.py"))]
    names = []
    for file in files:
        parts = file.relative_to(base).with_suffix("").parts
        if all(part.isidentifier() for part in parts) and not _SPECIAL & set(parts):
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return base, names


def _is_package(folder: Path) -> bool:
    """A directory with ``__init__.py``, or a namespace of such."""
    return folder.is_dir() and any(any(folder.glob(pattern)) for pattern in ("__init__.py", "*/__init__.py"))


def compare_imports(before: Path, after: Path, on_sim: bool, preload: bool = True) -> Imports:
    """Import every module of the package in ``before`` and then of its conversion in ``after``.

    ``preload``: with what old packages and partly installed libraries need, for which torch is imported first.
    """
    old, new = (walk(folder, on_sim, preload) for folder in (before, after))
    lost = []
    for name, (error, names) in old.items():
        if error:
            continue
        error_now, names_now = new.get(name, ("the process died", frozenset()))
        if error_now:
            lost.append((name, error_now))
        elif names - names_now:
            lost.append((name, "without " + ", ".join(sorted(names - names_now))))
    good, good_now = (sum(not error for error, _ in found.values()) for found in (old, new))
    never = tuple((name, error) for name, (error, _) in old.items() if error)
    return Imports(len(old), good, good_now, tuple(lost), never)


def walk(root: Path, on_sim: bool, preload: bool = True) -> dict[str, tuple[str, frozenset[str]]]:
    """By module of the package in ``root``: the error of its import, "" for none, and the names it then has."""
    base, waiting = modules_of(root)
    found: dict[str, tuple[str, frozenset[str]]] = {}
    with tempfile.TemporaryDirectory(prefix="npuport-imports-", ignore_cleanup_errors=True) as scratch:
        results = Path(scratch, "results")
        while waiting:
            results.write_text("")
            _start(base, results, waiting, Path(scratch), on_sim, preload)
            for line in results.read_text(encoding="utf-8").splitlines():
                one = json.loads(line)
                found[one["module"]] = (one["error"], frozenset(one["names"]))
            done = [name for name in waiting if name in found]
            if len(done) < len(waiting):  # it died
                found[waiting[len(done)]] = ("the process died", frozenset())
            waiting = waiting[len(done) + 1 :]
    return found


def _start(base: Path, results: Path, modules: Sequence[str], scratch: Path, on_sim: bool, preload: bool) -> None:
    simulated = ["-m", "npuport", "run", "--sim", "--", sys.executable] if on_sim else []
    command = [sys.executable, *simulated, str(_WALK), str(base), str(results), "--stand-in", *_COMPILED]
    command += ["--torch"] if preload else []
    command += [] if on_sim else ["--absent", "torch_npu"]  # installed, it fails to load without CANN
    environment = {
        **os.environ,
        "HOME": str(scratch),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),  # of the simulated NPU
        "HF_HUB_OFFLINE": "1",
        "YOLO_OFFLINE": "true",
        "YOLO_AUTOINSTALL": "false",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **({} if on_sim else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}),
    }
    quiet = subprocess.DEVNULL
    done = subprocess.run(
        command,
        input="\n".join(modules),
        text=True,
        stdout=quiet,
        stderr=quiet,
        env=environment,
        cwd=scratch,
        check=False,
    )
    if done.returncode == 2 and not results.stat().st_size:
        raise RuntimeError(f"the walk does not start: {' '.join(command)}")


def table(results: Sequence[Result]) -> str:
    """The results as Markdown."""
    lines = ["| " + " | ".join(_COLUMNS) + " |", "| --- | --- |" + " ---: |" * (len(_COLUMNS) - 2)]
    for one in results:
        imports = one.imports
        cells = [one.name, one.target, one.python_files, one.changed, one.edits, one.left]
        cells.append(len(one.faults) - (len(imports.lost) if imports else 0))
        cells += [imports.modules, imports.before, imports.after, len(imports.lost)] if imports else [""] * 4
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def packages_in(folder: Path, wanted: Sequence[str]) -> list[Path]:
    """The source distributions in ``folder`` whose name, less the version, is wanted; all if none is named.

    Raises:
        SystemExit: there is none.
    """
    found = [one for one in sorted(folder.iterdir()) if one.is_dir()] if folder.is_dir() else []
    chosen = [one for one in found if not wanted or any(one.name.startswith(f"{name}-") for name in wanted)]
    if not chosen:
        raise SystemExit(
            f"{folder} holds no unpacked source distribution{' of ' + ', '.join(wanted) if wanted else ''}"
        )
    return chosen


def check_package(root: Path, target: str, imports: str, scratch: Path) -> Result:
    """All checks of one package; ``scratch`` is empty again afterwards."""
    out = scratch / root.name
    result = convert_package(root, out, target)
    if imports != "none":
        result = dataclasses.replace(result, imports=compare_imports(root, out, imports == "sim"))
    shutil.rmtree(out)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="distributions, without the version")
    parser.add_argument("--imports", choices=("none", "cpu", "sim"), default="none", help="where modules are imported")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every result, with what was found")
    options = parser.parse_args(argv)
    results = []
    with tempfile.TemporaryDirectory(prefix="npuport-packages-") as scratch:
        for root in packages_in(options.folder.resolve(), options.only):
            results.append(check_package(root, options.target, options.imports, Path(scratch)))
            print(table(results).splitlines()[-1], file=sys.stderr, flush=True)
            for fault in results[-1].faults:
                print(f"  {fault}", file=sys.stderr, flush=True)
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(one) for one in results], indent=1) + "\n")
    print(table(results))
    return int(any(one.faults for one in results))


if __name__ == "__main__":
    sys.exit(main())
