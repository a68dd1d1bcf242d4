"""`npuport explain`: what is known about a word, an error or the logs of a job."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from npuport.errors import UserError

_CODE = re.compile(r"\d{6}|ERR\d{5}|[EW][A-Z0-9]\d{4}")


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD…",
            help="NP101, cuda-device-string, torch.cuda.Stream, torch_npu.npu_rms_norm, aten::unique, NCCL_DEBUG, "
            "flash_attn, Ascend910B3, EI0006, 507015, or the text of an error. After --log: more logs.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            "--log",
            metavar="PATH",
            help="A log of a training job, or a folder of logs, of one rank or all: find what went wrong first. "
            "May be given several times.",
            show_default=False,
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="With --log: print JSON.")] = False,
) -> None:
    """Explain a rule, an error code or message, a torch or torch_npu name, an environment variable, a library or a
    chip; or find the first cause in logs. Without a word, list the rules.

    Exit codes: 0 explained, or logs without an error; 1 logs with an error; 2 nothing is known about the word.
    """
    if log:
        from npuport.cli.explain_log import explain_logs

        raise SystemExit(explain_logs([*log, *map(Path, words or ())], json_))
    if json_:
        raise UserError("--json needs --log.")
    _explain_word(" ".join(words) if words else None)


def _explain_word(word: str | None) -> None:
    from npuport.cli.documents import rule_documents
    from npuport.cli.explain_words import nearest, what_is_known

    if word is None:
        for document in rule_documents():
            print(f"{document.code}  {document.name}")
        return
    found = next((one for one in rule_documents() if word.upper() == one.code or word.lower() == one.name), None)
    if found is not None:
        _print_markdown(found.text())
        return
    lines = list(what_is_known(word))
    if not lines and _CODE.fullmatch(word):
        raise UserError(
            "{word} is unknown: no list at hand names this code. CANN's documents may (search hiascend.com for it), "
            "and the lines around it in the log say more: npuport explain --log FILE",
            word=word,
        )
    if not lines:
        raise UserError("nothing is known about {word}.{nearest}", word=word, nearest=nearest(word))
    print("\n".join(lines))


def _print_markdown(text: str) -> None:
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
