"""A machine and what is wrong with it as Markdown, for a bug report."""

from __future__ import annotations

from collections.abc import Sequence

from npuport import __version__
from npuport.findings import Diagnosis, Sentence


def doctor_markdown(
    headline: Sequence[tuple[Sentence, str]],
    packages: Sequence[tuple[str, str]],
    variables: Sequence[tuple[str, str]],
    diagnoses: Sequence[Diagnosis],
) -> str:
    """English, whatever the user's language: those who read bug reports share no other."""
    lines = [f"### Environment (npuport doctor {__version__})", ""]
    lines += ["| | |", "| --- | --- |"]
    lines += [f"| {name} | {_cell(value)} |" for name, value in headline]
    lines += ["", "#### What is wrong", ""]
    lines += [f"- **{one.code} {one.name}** ({one.severity.value}): {_cell(str(one.seen))}" for one in diagnoses]
    lines += [] if diagnoses else ["Nothing that npuport doctor checks."]
    lines += ["", "<details><summary>Packages and variables</summary>", "", "```text"]
    lines += [f"{name}=={version}" for name, version in packages]
    lines += [""] + [f"{name}={value}" for name, value in variables]
    return "\n".join([*lines, "```", "", "</details>"]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
