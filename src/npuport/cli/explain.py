"""`npuport explain`: what is known about a rule, a torch.cuda name, a variable, a library or a chip."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.facts import Chip, CudaName, Library, Variable
    from npuport.findings import Basis


def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD",
            help="NP101, cuda-device-string, torch.cuda.Stream, NCCL_DEBUG, flash_attn, Ascend910B3, …",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain a rule, a torch.cuda name, an environment variable, a library or a chip. Without a word, list the rules.

    Exit codes: 0 explained; 2 nothing is known about the word.
    """
    from npuport.cli.documents import rule_documents

    if word is None:
        for document in rule_documents():
            print(f"{document.code}  {document.name}")
        return
    found = next((one for one in rule_documents() if word.upper() == one.code or word.lower() == one.name), None)
    if found is not None:
        _print_markdown(found.text())
        return
    lines = list(_facts(word))
    if not lines:
        raise UserError("nothing is known about {word}.{nearest}", word=word, nearest=_nearest(word))
    print("\n".join(lines))


def _print_markdown(text: str) -> None:
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def _facts(word: str) -> Iterator[str]:
    """What the tables of facts say about a word; nothing when they do not know it."""
    from npuport import facts

    cuda = facts.torch_cuda(word) or facts.torch_cuda(f"torch.{word}") or facts.torch_cuda(f"torch.cuda.{word}")
    chip = facts.chip(word)
    library = facts.library(word) or facts.distribution(word)
    variable = facts.variable(word)
    if cuda is not None:
        yield from _cuda_name(cuda)
    elif chip is not None:
        yield from _chip(chip)
    elif library is not None:
        yield from _library(library)
    elif variable is not None:
        yield from _variable(variable)


def _cuda_name(entry: CudaName) -> Iterator[str]:
    meaning = {
        "same": f"{entry.npu_name}, with the same meaning",
        "renamed": f"{entry.npu_name}",
        "missing": "no counterpart on torch.npu",
    }
    yield f"{entry.name}  →  {meaning[entry.status]}"
    if entry.note:
        yield f"  {entry.note}"
    if entry.cuda_signature:
        yield f"  CUDA: {entry.cuda_signature}"
        yield f"  NPU:  {entry.npu_signature or '(unknown)'}"
    yield _source(entry.basis)


def _variable(entry: Variable) -> Iterator[str]:
    meaning = {
        "renamed": f"{entry.counterpart}",
        "same": "read on Ascend, too",
        "no-counterpart": "nothing on Ascend reads it",
    }
    yield f"{entry.name}  →  {meaning[entry.status]}"
    if entry.note:
        yield f"  {entry.note}"
    yield _source(entry.basis)


def _library(entry: Library) -> Iterator[str]:
    meaning = {
        "native": "supports Ascend itself",
        "adapted": f"works on Ascend with {entry.replacement}",
        "replace": f"use {entry.replacement} instead",
        "cuda-only": "CUDA only; no counterpart is known",
        "neutral": "has no device code; works as it is",
    }
    yield f"{entry.name}: {meaning[entry.status]}"
    if entry.note:
        yield f"  {entry.note}"
    yield _source(entry.basis)


def _chip(entry: Chip) -> Iterator[str]:
    overflow = {
        "saturation": "overflow saturates and NaN becomes 0; only the overflow flag shows it",
        "inf_nan": "overflow gives Inf and NaN, as IEEE says",
        "both": "overflow gives Inf and NaN, as IEEE says; saturation can be switched on",
    }
    yield f"{entry.name} (family {entry.family}, SoC version {entry.soc_version})"
    if entry.memory_gib is not None:
        yield f"  memory {entry.memory_gib} GiB"
    yield f"  bfloat16: {'yes' if entry.bf16 else 'no'}; {overflow[entry.overflow]}"
    if entry.note:
        yield f"  {entry.note}"
    yield _source(entry.basis)


def _source(basis: Basis) -> str:
    return f"  [{basis}]"


def _nearest(word: str) -> str:
    """ " Did you mean …?" with the nearest words that are known, or where to look."""
    import difflib

    from npuport.report.language import translate

    near = difflib.get_close_matches(word.lower(), _known(), n=3, cutoff=0.6)
    if near:
        return " " + translate("Did you mean {words}?", words=", ".join(_known()[name] for name in near))
    return " " + translate("`npuport explain` lists the rules.")


def _known() -> dict[str, str]:
    """Every word that can be explained, by its lower-case form."""
    from npuport import facts
    from npuport.cli.documents import rule_documents

    words = [part for document in rule_documents() for part in (document.code, document.name)]
    words += [entry.name for entry in facts.all_torch_cuda_names()]
    words += [entry.name for entry in facts.all_variables()]
    words += [entry.name for entry in facts.all_libraries()]
    words += [entry.name for entry in facts.all_chips()]
    return {word.lower(): word for word in words}
