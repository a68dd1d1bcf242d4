"""`npuport plan`: how to divide the training of a large model over devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.llm.planning.model import Model


def plan(
    model: Annotated[
        Path | None, typer.Argument(help="A Hugging Face config.json, or the folder with it.", show_default=False)
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Machines.")] = 1,
    devices: Annotated[int, typer.Option("--devices-per-node", min=1, help="Devices of one machine.")] = 8,
    chip: Annotated[str, typer.Option("--chip", help="The chip, such as Ascend910B3.")] = "Ascend910B3",
    memory: Annotated[
        float | None, typer.Option("--memory", min=1, help="GiB of one device, instead of the chip's.")
    ] = None,
    reserve: Annotated[
        float, typer.Option("--reserve", min=0, max=0.9, help="Share of the memory that is left free.")
    ] = 0.1,
    sequence: Annotated[int, typer.Option("--sequence", min=1, help="Tokens of one sequence.")] = 4096,
    global_batch: Annotated[int, typer.Option("--global-batch", min=1, help="Sequences of one step.")] = 256,
    micro_batch: Annotated[
        int | None,
        typer.Option("--micro-batch", min=1, help="Sequences at once on one device; 1, 2, 4 and 8 are tried."),
    ] = None,
    framework: Annotated[str, typer.Option("--framework", help="megatron, deepspeed or fsdp.")] = "megatron",
    top: Annotated[int, typer.Option("--top", min=1, help="How many plans are shown.")] = 5,
    explain: Annotated[bool, typer.Option("--explain", help="Show the arithmetic of the first plan.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    write: Annotated[
        Path | None, typer.Option("--write", help="Write the first plan as configuration of the framework.")
    ] = None,
    layers: Annotated[int | None, typer.Option("--layers", min=1, help="Layers, instead of a config.json.")] = None,
    hidden: Annotated[int | None, typer.Option("--hidden", min=1, help="Width of the model.")] = None,
    heads: Annotated[int | None, typer.Option("--heads", min=1, help="Heads of attention.")] = None,
    kv_heads: Annotated[
        int | None, typer.Option("--kv-heads", min=1, help="Heads of keys and values; --heads by default.")
    ] = None,
    ffn: Annotated[int | None, typer.Option("--ffn", min=1, help="Inner width of the MLP, of one expert.")] = None,
    vocab: Annotated[int | None, typer.Option("--vocab", min=1, help="Tokens of the vocabulary.")] = None,
    tied: Annotated[bool, typer.Option("--tied", help="The head is the embedding.")] = False,
    gated: Annotated[bool, typer.Option("--gated/--no-gated", help="A gated MLP (SwiGLU), or one without.")] = True,
    experts: Annotated[int, typer.Option("--experts", min=1, help="Experts of each layer; 1 is a dense model.")] = 1,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="Experts of one token.")] = 1,
) -> None:
    """Choose how to divide the training of a large language model over devices.

    Every division into tensor (TP), pipeline (PP), context (CP), expert (EP) and data parallelism (DP) that is even is
    tried; memory is estimated by published formulas. Ends with 1 when nothing fits.
    """
    from npuport.cli.plan_output import answer, document
    from npuport.cli.shared import FINDINGS, talk, write_aside
    from npuport.llm.planning.choosing import choose
    from npuport.llm.planning.layout import FRAMEWORKS, Job
    from npuport.llm.planning.layout import framework as framework_called
    from npuport.llm.planning.written import configuration
    from npuport.report.language import translate

    if framework not in FRAMEWORKS:
        raise UserError("--framework takes megatron, deepspeed or fsdp, not {given}", given=framework)
    sizes = {
        "--layers": layers,
        "--hidden": hidden,
        "--heads": heads,
        "--ffn": ffn,
        "--vocab": vocab,
    }
    shape = _model(model, sizes, kv_heads, tied=tied, gated=gated, experts=experts, top_k=top_k)
    job = Job(nodes, devices, sequence, global_batch, micro_batch)
    offered = framework_called(framework)
    available = (memory or _chip_memory(chip)) * 1024**3
    choice = choose(shape, job, offered, available * (1 - reserve))
    if as_json:
        print(document(shape, job, offered, available, reserve, choice, top))
    else:
        print("\n".join(answer(shape, job, offered, available, reserve, choice, top, explain=explain)))
    if not choice.fitting:
        raise SystemExit(FINDINGS)
    if write is not None:
        first = choice.fitting[0].layout
        write_aside(write, configuration(shape, job, first, offered).encode())
        if framework == "deepspeed" and first.recompute == "full":
            talk(
                "npuport: "
                + translate("set gradient_checkpointing in the training's arguments: DeepSpeed's file cannot")
            )


def _model(
    path: Path | None,
    sizes: dict[str, int | None],
    kv_heads: int | None,
    *,
    tied: bool,
    gated: bool,
    experts: int,
    top_k: int,
) -> Model:
    from npuport.llm.planning.model import Model, model_from

    if path is not None:
        if any(size is not None for size in sizes.values()):
            raise UserError("{path} already gives the sizes: leave out --layers, --hidden and the others.", path=path)
        return model_from(path)
    missing = [name for name, size in sizes.items() if size is None]
    if missing:
        raise UserError("give a config.json, or also {missing}.", missing=", ".join(missing))
    layers, hidden, heads, ffn, vocab = (size or 0 for size in sizes.values())
    if hidden % heads or heads % (kv_heads or heads):
        raise UserError("--heads must divide --hidden, and --kv-heads must divide --heads.")
    if top_k > experts:
        raise UserError("--top-k is more than --experts.")
    return Model(
        layers,
        hidden,
        heads,
        kv_heads or heads,
        hidden // heads,
        ffn,
        vocab,
        tied=tied,
        gated=gated,
        activation="silu" if gated else "gelu",
        experts=experts,
        top_k=top_k,
    )


def _chip_memory(name: str) -> float:
    from npuport import facts

    found = facts.chip(name)
    if found is None:
        known = ", ".join(one.name for one in facts.all_chips())
        raise UserError("unknown chip {chip}. Known are {known}.", chip=name, known=known)
    if found.memory_gib is None:
        raise UserError("the memory of {chip} is not known here: give it with --memory GIB.", chip=found.name)
    return float(found.memory_gib)
