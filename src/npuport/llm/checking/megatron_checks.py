"""What Megatron and MindSpeed refuse when they read their options, found before a job starts.

A size that the script does not say is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from npuport.findings import say
from npuport.llm.checking.contradictions import Contradiction, contradicts
from npuport.llm.checking.documents import Document
from npuport.llm.checking.megatron import data_parallel, model_parallel
from npuport.llm.checking.training import Training

# Options that spread layers over stages in other ways than evenly.
_UNEVEN = (
    *("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "pipeline_model_parallel_layout"),
    *("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split", "hybrid_layer_pattern"),
    *("noop_layers", "num_layer_list", "num_virtual_stages_per_pipeline_rank", "schedules_method"),
)


def check_megatron(training: Training) -> Iterator[Contradiction]:
    """Each contradiction in the options of a Megatron or MindSpeed training."""
    main = training.main
    yield from _devices(training)
    yield from _tensor(main)
    yield from _pipeline(main)
    yield from _context(main)
    yield from _experts(main)
    yield from _lengths(main)
    yield from _switches(main)


def _devices(training: Training) -> Iterator[Contradiction]:
    main, devices, split = training.main, training.given.devices, model_parallel(training.main)
    if devices and split and devices % split:
        text = say("TP x PP x CP is {split}, which does not divide {devices} devices", split=split, devices=devices)
        yield contradicts("megatron-world", text)
    data, micro, batch = data_parallel(training), main.whole("micro_batch_size"), main.whole("global_batch_size")
    if data and micro and batch and batch % (micro * data) and not main.flag("decrease_batch_size_if_needed"):
        text = say(
            "a global batch of {batch} is not divisible by micro-batch {micro} x DP {data} ({devices} devices)",
            batch=batch,
            micro=micro,
            data=data,
            devices=devices,
        )
        yield contradicts("megatron-batch", text)


def _tensor(main: Document) -> Iterator[Contradiction]:
    tensor = main.whole("tensor_model_parallel_size", 1)
    heads, hidden = main.whole("num_attention_heads"), main.whole("hidden_size")
    groups = main.whole("num_query_groups", 1) if main.flag("group_query_attention") else None
    if tensor and heads and heads % tensor:
        yield contradicts("megatron-heads", say("{heads} heads over TP {tensor}", heads=heads, tensor=tensor))
    if tensor and groups and groups % tensor and tensor % groups:
        text = say("{groups} query groups over TP {tensor}", groups=groups, tensor=tensor)
        yield contradicts("megatron-groups", text)
    if hidden and heads and hidden % heads and "kv_channels" not in main.options:
        text = say("a hidden size of {hidden} is not divisible by {heads} heads", hidden=hidden, heads=heads)
        yield contradicts("megatron-head-width", text)
    if tensor == 1 and main.flag("sequence_parallel"):
        yield contradicts("megatron-sequence-parallel", say("--sequence-parallel with TP 1"))


def _pipeline(main: Document) -> Iterator[Contradiction]:
    stages, layers = main.whole("pipeline_model_parallel_size", 1), main.whole("num_layers")
    virtual = main.whole("num_layers_per_virtual_pipeline_stage")
    if stages == 1 and virtual:
        yield contradicts("megatron-virtual-pipeline", say("--num-layers-per-virtual-pipeline-stage with PP 1"))
    if not stages or not layers or any(name in main.options for name in _UNEVEN):
        return
    if layers % stages:
        yield contradicts("megatron-layers", say("{layers} layers over PP {stages}", layers=layers, stages=stages))
    elif virtual and (layers // stages) % virtual:
        text = say(
            "{layers} layers of a stage in virtual stages of {virtual}", layers=layers // stages, virtual=virtual
        )
        yield contradicts("megatron-virtual-layers", text)


def _context(main: Document) -> Iterator[Contradiction]:
    context, sequence = main.whole("context_parallel_size", 1), main.whole("seq_length")
    if not context or context == 1:
        return
    if main.text("context_parallel_algo") == "ulysses_cp_algo":
        tensor, heads = main.whole("tensor_model_parallel_size", 1), main.whole("num_attention_heads")
        if tensor and heads and heads % (tensor * context):
            text = say(
                "{heads} heads over TP {tensor} x CP {context} (Ulysses)", heads=heads, tensor=tensor, context=context
            )
            yield contradicts("mindspeed-ulysses", text)
    elif sequence and sequence % (2 * context):
        text = say("a sequence of {sequence} over CP {context}", sequence=sequence, context=context)
        yield contradicts("megatron-context", text)


def _experts(main: Document) -> Iterator[Contradiction]:
    over, experts = main.whole("expert_model_parallel_size", 1), main.whole("num_experts")
    if not over or over == 1:
        return
    if "num_experts" not in main.options:
        yield contradicts("megatron-no-experts", say("EP {over} without experts", over=over))
    elif experts and experts % over:
        yield contradicts("megatron-experts", say("{experts} experts over EP {over}", experts=experts, over=over))


def _lengths(main: Document) -> Iterator[Contradiction]:
    sequence, positions = main.whole("seq_length"), main.whole("max_position_embeddings")
    if sequence and positions and positions < sequence:
        text = say(
            "a sequence of {sequence}, but {positions} positions at most", sequence=sequence, positions=positions
        )
        yield contradicts("megatron-positions", text)
    least, peak = main.number("min_lr", 0.0), main.number("lr")
    if least is not None and peak is not None and least > peak:
        text = say("--min-lr {least} is above --lr {peak}", least=f"{least:g}", peak=f"{peak:g}")
        yield contradicts("megatron-rates", text)
    if {"train_iters", "train_samples"} <= main.options.keys():
        yield contradicts("megatron-length", say("--train-iters and --train-samples"))
    given = [name for name in ("lr_warmup_iters", "lr_warmup_samples") if main.number(name)]
    if "lr_warmup_fraction" in main.options and given:
        text = say("--lr-warmup-fraction and {other}", other="--" + given[0].replace("_", "-"))
        yield contradicts("megatron-warm-up", text)


def _switches(main: Document) -> Iterator[Contradiction]:
    if main.flag("fp16") and main.flag("bf16"):
        yield contradicts("megatron-precisions", say("--fp16 and --bf16"))
    if main.text("recompute_granularity") == "selective" and main.text("recompute_method"):
        yield contradicts("megatron-selective", say("--recompute-granularity selective and --recompute-method"))
    gathers = main.flag("overlap_param_gather") and not main.flag("use_megatron_fsdp")
    missing = [name for name in ("use_distributed_optimizer", "overlap_grad_reduce") if not main.flag(name)]
    if gathers and missing and main.text("optimizer", "adam") == "adam":
        names = ", ".join("--" + name.replace("_", "-") for name in missing)
        yield contradicts("megatron-overlap", say("--overlap-param-gather without {names}", names=names))
