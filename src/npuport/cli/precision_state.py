"""What `npuport precision state` says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.precision_preflight import said
from npuport.cli.shared import CLEAN, FINDINGS, print_json, write_aside
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.precision.training_state.abnormal_batches import Abnormal
    from npuport.precision.training_state.alerts import Alert
    from npuport.precision.training_state.comparing import StateComparison
    from npuport.precision.training_state.history import History, Series
    from npuport.precision.training_state.kept_batches import KeptBatch

_SHOWN = 6  # alerts of one name
_LAYERS = 40


def state(
    run: Path, candidate: Path | None, tokenizer: str, all_layers: bool, as_json: bool, html: Path | None = None
) -> int:
    """Judge the training of a run, or compare it with another; the exit code."""
    from npuport.precision.training_state.history import read_histories

    if candidate is not None and html is not None:
        raise UserError("--html shows one run: leave out {candidate}.", candidate=candidate)
    first = read_histories(run)
    if candidate is None:
        return _alone(run, first, tokenizer, all_layers, as_json, html)
    return _pair(run, first, candidate, read_histories(candidate), all_layers, as_json)


def _alone(
    run: Path, histories: list[History], tokenizer: str, all_layers: bool, as_json: bool, html: Path | None
) -> int:
    from npuport.precision.training_state.alerts import alerts_of
    from npuport.precision.training_state.drift import drift_of

    history = histories[0]
    _require_steps(run, history)
    alerts = [(number, one) for number, series in enumerate(history.series) for one in alerts_of(series)]
    alerts += [(0, one) for one in drift_of(histories)]
    batches = _batches(run, tokenizer)
    if html is not None:
        write_aside(html, _page(run, histories, [one for _, one in alerts], batches).encode())
    if as_json:
        document = {
            "version": 1,
            "rank": history.rank,
            "batches": [_batch_json(*entry) for entry in batches],
            "alerts": [{"optimizer": number, **_alert_json(one)} for number, one in alerts],
            "layers": [_table_json(series) for series in history.series],
        }
        print_json(document)
    else:
        for series in history.series:
            print("\n".join(_table(series, all_layers)))
        print("\n".join([*_alerts([one for _, one in alerts]), *_batch_text(batches)]))
    return FINDINGS if alerts else CLEAN


def _page(
    run: Path, histories: list[History], alerts: list[Alert], batches: list[tuple[KeptBatch, list[Abnormal]]]
) -> str:
    from dataclasses import asdict

    from npuport.precision.training_state.drift import compared_steps
    from npuport.precision.training_state.page_data import curves_of, maps_of
    from npuport.report.state_page import state_page

    optimizers = [
        {
            "heading": next(_table(series, all_layers=False)),
            "curves": [asdict(one) for one in curves_of(series)],
            "maps": maps_of(series),
        }
        for series in histories[0].series
        if series.steps
    ]
    told = [{"step": one.step, "layer": one.layer, "said": said(one.text)} for one in alerts]
    return state_page(
        str(run),
        [one.rank for one in histories],
        len(compared_steps(histories)),
        optimizers,
        told,
        [line for line in _batch_text(batches) if line],
    )


def _require_steps(run: Path, history: History) -> None:
    if not any(series.steps for series in history.series):
        raise UserError("{path} holds no step: the run ended before its first optimizer step.", path=run)


def _table(series: Series, all_layers: bool) -> Iterator[str]:
    """One row for each layer: what its numbers were in the first steps and are in the last ones."""
    from npuport.precision.training_state.layers import ends_of, layers_of
    from npuport.report.language import counted, translate

    losses = [step.loss for step in series.steps if step.loss is not None]
    skipped = sum(step.is_skipped for step in series.steps)
    told = (
        f", {translate('loss {first} … {last}', first=f'{losses[0]:.4g}', last=f'{losses[-1]:.4g}')}" if losses else ""
    )
    yield (
        counted(len(series.steps), "step")
        + told
        + (f", {translate('{number} left out', number=skipped)}" if skipped else "")
    )
    layers = layers_of(series)
    if not layers:
        return
    width = min(44, max(len(layer.name) for layer in layers))
    heads = (translate("gradient norm"), translate("update ratio"), translate("weight norm"))
    yield f"  {'':{width}}  " + "  ".join(f"{head:>23}" for head in heads)
    for layer in layers if all_layers else layers[:_LAYERS]:
        columns = (layer.grad_norm, layer.update_ratio, layer.weight_norm)
        yield f"  {layer.name[-width:]:{width}}  " + "  ".join(f"{ends_of(one):>23}" for one in columns)
    if len(layers) > _LAYERS and not all_layers:
        yield "  … " + counted(len(layers) - _LAYERS, "more layer") + " (--all)"


def _alerts(alerts: list[Alert]) -> Iterator[str]:
    from npuport.report.language import translate

    yield ""
    if not alerts:
        yield translate("Nothing is wrong with it.")
        return
    for name in dict.fromkeys(one.name for one in alerts):
        members = [one for one in alerts if one.name == name]
        for one in members[:_SHOWN]:
            layer = f" {one.layer}:" if one.layer else ""
            yield f"✗ {translate('step {step}', step=one.step)}{layer} {said(one.text)}"
        if len(members) > _SHOWN:
            yield "  … " + translate("{number} more of this kind", number=len(members) - _SHOWN)


def _batches(run: Path, tokenizer: str) -> list[tuple[KeptBatch, list[Abnormal]]]:
    """The batches that the run kept, with what is out of the ordinary in them."""
    folder = (run if run.is_dir() else run.parent) / "batches"
    if not folder.is_dir():
        return []
    from npuport.precision.training_state.abnormal_batches import abnormal_in
    from npuport.precision.training_state.kept_batches import read_batches

    decode = _decoder(tokenizer) if tokenizer else None
    return [(batch, abnormal_in(batch, decode)) for batch in read_batches(folder)]


def _decoder(tokenizer: str) -> Callable[[list[int]], str]:
    try:
        from transformers import AutoTokenizer

        # Whether this is typed differs between releases.
        load: Any = AutoTokenizer.from_pretrained
        loaded = load(tokenizer)
    except ImportError as error:
        raise UserError("--tokenizer takes the package transformers:\n  pip install transformers") from error
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError("the tokenizer {name} cannot be loaded: {reason}", name=tokenizer, reason=reason) from error
    return lambda ids: str(loaded.decode(ids))


def _batch_text(batches: list[tuple[KeptBatch, list[Abnormal]]]) -> Iterator[str]:
    from npuport.report.language import translate

    for batch, found in batches:
        yield ""
        shapes = ", ".join(f"{name} {tuple(one.shape)}" for name, one in batch.tensors.items())
        yield translate(
            "the batch of step {step}, rank {rank}: {shapes}", step=batch.step, rank=batch.rank, shapes=shapes
        )
        if not found:
            yield "  " + translate("nothing is out of the ordinary in it")
        for one in found:
            where = f" [{', '.join(map(str, one.samples[:_SHOWN]))}{', …' if len(one.samples) > _SHOWN else ''}]"
            yield f"  ✗ {one.tensor}{where if one.samples else ''}: {said(one.text)}"


def _batch_json(batch: KeptBatch, found: list[Abnormal]) -> dict[str, Any]:
    told = [{"tensor": one.tensor, "samples": list(one.samples), "text": str(one.text)} for one in found]
    return {"step": batch.step, "rank": batch.rank, "abnormal": told}


def _alert_json(alert: Alert) -> dict[str, Any]:
    return {"name": alert.name, "step": alert.step, "layer": alert.layer or None, "text": str(alert.text)}


def _table_json(series: Series) -> list[dict[str, Any]]:
    from npuport.precision.training_state.layers import layers_of

    return [
        {
            "layer": layer.name,
            "grad_norm": [_finite(one) for one in layer.grad_norm],
            "weight_norm": [_finite(one) for one in layer.weight_norm],
            "update_ratio": [_finite(one) for one in layer.update_ratio],
        }
        for layer in layers_of(series)
    ]


def _finite(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "inf"


def _pair(
    run: Path, first: list[History], candidate: Path, second: list[History], all_layers: bool, as_json: bool
) -> int:
    from npuport.precision.training_state.comparing import compare_states

    compared = [
        found
        for one, other in zip(first[0].series, second[0].series, strict=False)
        if (found := compare_states(one, other)) is not None
    ]
    if not compared:
        raise UserError(
            "{reference} and {candidate} have no step and layer in common.", reference=run, candidate=candidate
        )
    if as_json:
        print_json({"version": 1, "optimizers": [_pair_json(one) for one in compared]})
    else:
        print("\n".join(line for one in compared for line in _pair_text(one, all_layers)))
    return FINDINGS if any(one.is_suspect for one in compared) else CLEAN


def _pair_text(found: StateComparison, all_layers: bool) -> Iterator[str]:
    from npuport.report.language import counted, translate

    shown = found.first if all_layers else found.first[:_LAYERS]
    width = min(44, max(len(layer.name) for layer in found.first))
    yield translate("step {step}, in the order of the backward pass", step=found.first_step)
    yield f"  {'':{width}}  {translate('norm ratio'):>12}  {translate('cosine'):>12}  {translate('difference'):>12}"
    for layer in shown:
        yield f"  {layer.name[-width:]:{width}}  {layer.ratio:>12.6f}  {layer.cosine:>12.6f}  {layer.error:>12.2e}"
    if len(found.first) > len(shown):
        yield "  … " + counted(len(found.first) - len(shown), "more layer") + " (--all)"
    yield ""
    yield f"{'✗' if found.is_suspect else '·'} {said(found.verdict)}"
    if found.parted is not None:
        yield "· " + translate("the losses differ by more than 1 % from step {step} on", step=found.parted)


def _pair_json(found: StateComparison) -> dict[str, Any]:
    return {
        "step": found.first_step,
        "steps": found.steps,
        "growth": found.growth,
        "jump": found.jump,
        "parted": found.parted,
        "is_suspect": found.is_suspect,
        "verdict": str(found.verdict),
        "layers": [
            {
                "layer": one.name,
                "ratio": _finite(one.ratio),
                "cosine": _finite(one.cosine),
                "difference": _finite(one.error),
            }
            for one in found.first
        ],
    }
