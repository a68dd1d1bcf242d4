"""`npuport check-config`: the configuration of a training beside published trainings, and what in it contradicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.guidance.judging import Judgement, Purpose
    from npuport.llm.checking.checking import Checked

SCHEMA = "npuport-check-config/1"
_PURPOSES = ("pretraining", "fine-tuning", "lora")
_KINDS = {"megatron": "Megatron or MindSpeed", "trainer": "TrainingArguments", "deepspeed": "DeepSpeed"}
QUANTITIES = {
    "rate": "learning rate",
    "final_share": "last learning rate / peak",
    "warmup_share": "warm-up / steps",
    "clipping": "gradient clipping",
    "weight_decay": "weight decay",
    "beta2": "Adam's beta2",
    "batch_tokens": "tokens of a step",
    "tokens": "tokens of the training",
    "fixed_scale": "fixed loss scale",
}
"""What people call the quantities of a recipe."""

_MARKS = {"usual": "✓", "note": "·", "unusual": "✗"}


def check_config(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What configures one training: a shell script, YAML or JSON; with it DeepSpeed's or accelerate's file "
            "and the model's config.json.",
        ),
    ],
    *,
    purpose: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="pretraining|fine-tuning|lora",
            help="What is trained how.",
            show_default="what the files say",
        ),
    ] = "",
    parameters: Annotated[
        float | None, typer.Option("--parameters", min=1, metavar="N", help="Size of the model, such as 7e9.")
    ] = None,
    devices: Annotated[int | None, typer.Option("--devices", min=1, metavar="N", help="Devices of the job.")] = None,
    sequence: Annotated[
        int | None, typer.Option("--sequence", min=1, metavar="N", help="Tokens of one sequence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare a training's configuration with published trainings, and find options that contradict each other.

    Nothing is started, and no device is needed. Ends with 1 when the training would not start, or a value is far from
    every published one; notes do not count.
    """
    from npuport.cli.shared import CLEAN, FINDINGS
    from npuport.llm.checking.checking import check_files
    from npuport.llm.checking.training import Given

    if purpose and purpose not in _PURPOSES:
        raise UserError("--for takes pretraining, fine-tuning or lora, not {given}", given=purpose)
    size = round(parameters) if parameters else None
    given = Given(cast("Purpose", purpose) if purpose else None, size, devices, sequence)
    found = check_files(files, given)
    if as_json:
        print(json.dumps({"schema": SCHEMA, "trainings": [_as_json(one) for one in found]}, indent=2))
    else:
        print("\n\n".join("\n".join(_as_text(one)) for one in found))
    raise SystemExit(FINDINGS if any(one.is_faulty for one in found) else CLEAN)


def _as_text(checked: Checked) -> Iterator[str]:
    from npuport.cli.precision_preflight import said
    from npuport.report.language import translate

    yield _headline(checked)
    for one in checked.judgements:
        name, value = translate(QUANTITIES[one.quantity]), _value(checked, one.quantity)
        yield f"  {_MARKS[one.status]} {name}: {value}, {_origin(checked, one)}"
        yield f"      {said(one.text)}"
        if one.advised is not None and one.status != "usual":
            yield "      → " + translate("published instead: {value}", value=f"{one.advised:g}")
    for trouble in checked.contradictions:
        mark = "✗" if trouble.check.level == "error" else "·"
        yield f"  {mark} {said(trouble.text)}"
        yield f"      → {translate(trouble.check.next_step)} [{trouble.check.basis.source}]"
    if checked.unknown:
        names = ", ".join(translate(QUANTITIES[name]) for name in checked.unknown)
        yield "  ? " + translate("not known from the files: {names}", names=names)


def _headline(checked: Checked) -> str:
    from npuport.guidance.judging import short
    from npuport.report.language import translate

    training, recipe = checked.training, checked.told.recipe
    parts = [
        translate("what is trained is not known (--for)") if recipe.purpose == "unknown" else translate(recipe.purpose),
        translate("model of unknown size")
        if recipe.parameters is None
        else translate("{size} parameters", size=short(recipe.parameters)),
    ]
    if training.given.devices:
        parts.append(translate("{number} devices", number=training.given.devices))
    return f"{training.main.place} ({_KINDS.get(training.main.kind, training.main.kind)}): {', '.join(parts)}"


def _value(checked: Checked, quantity: str) -> str:
    value = getattr(checked.told.recipe, quantity)
    if quantity.endswith("share"):
        return f"{value:.3g}"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1e6 else f"{value:g}"


def _origin(checked: Checked, one: Judgement) -> str:
    from npuport.llm.checking.checking import is_written
    from npuport.report.language import translate

    option = checked.told.origins[one.quantity]
    if is_written(checked.training.main, option):
        return option
    return translate("{option} by default", option=option)


def _as_json(checked: Checked) -> dict[str, Any]:
    from npuport.llm.checking.checking import is_written

    training, told = checked.training, checked.told
    return {
        "file": str(training.main.path),
        "line": training.main.line or None,
        "kind": training.main.kind,
        "devices": training.given.devices,
        "recipe": asdict(told.recipe),
        "judgements": [
            {
                "quantity": one.quantity,
                "option": told.origins[one.quantity],
                "written": is_written(training.main, told.origins[one.quantity]),
                "status": one.status,
                "text": str(one.text),
                "advised": one.advised,
            }
            for one in checked.judgements
        ],
        "contradictions": [
            {
                "check": one.check.name,
                "level": one.check.level,
                "text": str(one.text),
                "next_step": one.check.next_step,
                "source": str(one.check.basis),
            }
            for one in checked.contradictions
        ],
        "unknown": checked.unknown,
    }
