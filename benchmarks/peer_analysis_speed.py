"""Claim: npuport reads a project in a small part of the time that the vendor's class of algorithm takes.

    pip install libcst jedi
    python benchmarks/peer_analysis_speed.py DIRECTORY [--files N]

The vendor's migration tool resolves the metadata of each file with libcst (qualified names, scopes, parents, positions)
and visits the tree in one pass; its analysis asks jedi to infer what each call stands for. This loop does the same with
the same two libraries and no rules at all: what it takes is a floor for any tool built that way. jedi is asked at every
call that a tool has to judge: those on lines with a word of the CUDA world or the name torch.

Both sides read the same N Python files, drawn at even distances from all that hold the word torch, in one process each.
npuport's figure is of its command from start to end, all rules included. Prints CPU seconds per file.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PEER = """
import sys
from pathlib import Path

import jedi
import libcst
from libcst import metadata

providers = (
    metadata.QualifiedNameProvider,
    metadata.ScopeProvider,
    metadata.ParentNodeProvider,
    metadata.PositionProvider,
)


class Visitor(libcst.CSTTransformer):
    METADATA_DEPENDENCIES = providers

    def __init__(self, sought):
        super().__init__()
        self.sought, self.calls = sought, []

    def on_leave(self, original, updated):
        names = self.get_metadata(metadata.QualifiedNameProvider, original, set())
        if isinstance(original, libcst.Call) and names:
            place = self.get_metadata(metadata.PositionProvider, original.func).end
            if place.line in self.sought:
                self.calls.append((place.line, place.column - 1))
        return updated


root = Path(sys.argv[1])
project = jedi.Project(root, sys_path=[str(root)])
for path in sorted(root.rglob("*.py")):
    text = path.read_text()
    sought = {n for n, line in enumerate(text.split("\\n"), 1) if any(w in line for w in ("cuda", "nccl", "torch"))}
    visitor = Visitor(sought)
    try:
        metadata.MetadataWrapper(libcst.parse_module(text)).visit(visitor)
    except libcst.ParserSyntaxError:
        continue
    script = jedi.Script(text, path=path, project=project)
    for line, column in visitor.calls:
        try:
            script.infer(line, column)
        except Exception:
            pass  # jedi meets its own limits now and then
"""


def cpu_seconds(command: list[str]) -> float:
    """User and system seconds of a command and its children.

    Raises:
        SystemExit: when it fails.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def drawn(tree: Path, number: int, into: Path) -> int:
    """Copy ``number`` of the files that hold the word torch, in their places; the number copied."""
    with_torch = [path for path in sorted(tree.rglob("*.py")) if b"torch" in path.read_bytes()]
    step = max(1, len(with_torch) // number)
    chosen = with_torch[::step][:number]
    for path in chosen:
        place = into / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return len(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        files = drawn(arguments.directory, arguments.files, Path(scratch))
        peer = cpu_seconds([sys.executable, "-c", PEER, scratch])
        npuport = [sys.executable, "-m", "npuport"]
        analyze = cpu_seconds([*npuport, "analyze", scratch, "-j", "1", "--no-cache", "--fail-on", "never"])
        whole = [*npuport, "analyze", str(arguments.directory), "-j", "1", "--no-cache", "--fail-on", "never"]
        every, all_files = cpu_seconds(whole), sum(1 for _ in arguments.directory.rglob("*.py"))
    print(f"{arguments.directory.name}: {files} of the files that hold the word torch")
    print(f"libcst and jedi without any rule: {peer / files:.2f} s of CPU a file")
    print(f"npuport analyze, the same files:  {analyze / files:.3f} s a file, {peer / analyze:.0f} times less")
    print(f"npuport analyze, all {all_files} Python files: {every / all_files:.4f} s a file")


if __name__ == "__main__":
    main()
