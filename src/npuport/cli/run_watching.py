"""Options of `npuport run` that have every Python process of the run watched or made deterministic."""

from __future__ import annotations

import os
from pathlib import Path

from npuport.cli.shared import talk
from npuport.errors import UserError


def write_facts(folder: Path) -> None:
    """--preflight: each process writes down what its training is made of."""
    from npuport.precision.starting import FACTS

    if any(folder.glob("run*.json")):
        raise UserError("{path} holds facts of a run already: choose another folder, or remove them.", path=folder)
    _start({FACTS: str(folder.resolve())})


def write_state(folder: Path) -> None:
    """--monitor: each process writes down the state of its training at each step."""
    from npuport.precision.starting import STATE

    if any(folder.glob("state.rank*.jsonl")):
        raise UserError(
            "{path} holds the state of a training already: choose another folder, or remove it.", path=folder
        )
    _start({STATE: str(folder.resolve())})


def make_deterministic(seed: int, no_dropout: bool, strict: bool) -> None:
    """--deterministic: each process computes the same bits again; what is set is said once."""
    from npuport.precision.preflight.determinism import NO_DROPOUT, SEED, STRICT, variables
    from npuport.report.language import translate

    chosen = variables(seed, no_dropout, strict)
    _start(chosen)
    own = {SEED, NO_DROPOUT, STRICT}
    shown = " ".join(f"{name}={value}" for name, value in chosen.items() if name not in own)
    talk("npuport: " + translate("deterministic: {variables}", variables=shown))
    mode = translate("an error") if strict else translate("a warning")
    talk(
        "npuport: "
        + translate(
            "seed {seed} for random, numpy, torch and the devices; deterministic algorithms, {mode} where there is "
            "none; dropout {dropout}",
            seed=seed,
            mode=mode,
            dropout=translate("off") if no_dropout else translate("as the script has it"),
        )
    )


def _start(variables: dict[str, str]) -> None:
    from npuport.search_path import STARTUP, first

    os.environ.update({**variables, "PYTHONPATH": first(STARTUP, "PYTHONPATH")})
