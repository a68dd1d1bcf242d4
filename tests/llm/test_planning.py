"""Parameters, memory, communication and choice, checked against published figures and by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from npuport.errors import UserError
from npuport.llm.planning.activations import layer_activations
from npuport.llm.planning.choosing import choose
from npuport.llm.planning.communication import communication
from npuport.llm.planning.layout import FRAMEWORKS, Job, Layout, framework, layouts
from npuport.llm.planning.memory import estimate, stage_memory, stage_parameters
from npuport.llm.planning.model import Model, model_from
from npuport.llm.planning.written import configuration

GIB = 1024**3
LLAMA_7B = Model(32, 4096, 32, 32, 128, 11008, 32000)
LLAMA_13B = Model(40, 5120, 40, 40, 128, 13824, 32000)
LLAMA_70B = Model(80, 8192, 64, 8, 128, 28672, 32000)
MIXTRAL = Model(32, 4096, 32, 8, 128, 14336, 32000, experts=8, top_k=2)
GPT2 = Model(
    12, 768, 12, 12, 64, 3072, 50257, tied=True, gated=False, activation="gelu_new", biases=True, positions=1024
)
LIMIT = 0.9 * 64 * GIB


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (LLAMA_7B, 6_738_415_616),
        (LLAMA_13B, 13_015_864_320),
        (LLAMA_70B, 68_976_648_192),
        (MIXTRAL, 46_702_792_704),
        (GPT2, 124_439_808),
    ],
)
def test_parameters_are_those_of_the_published_checkpoints(model: Model, published: int) -> None:
    assert model.parameters == published


def test_a_layer_is_korthikantis_without_dropout_and_scores() -> None:
    # 34 h less two dropout masks of 1 h and 5 a s; the MLP of width 4h keeps 8h + 8h as there.
    model = Model(1, 1024, 16, 16, 64, 4096, 1000, gated=False, activation="gelu")
    terms = dict(layer_activations(model, framework("megatron").policy, "none", 2048, 1))
    assert terms.pop("attention statistics") == 64 * 16
    assert sum(terms.values()) - 2 * 4 == (34 - 2) * 1024
    assert layer_activations(model, framework("megatron").policy, "full", 2048, 1) == {"layer input": 2 * 1024}


def test_accelerate_reads_what_is_written_for_fsdp(tmp_path: Path) -> None:
    config_args = pytest.importorskip("accelerate.commands.config.config_args")
    layout = Layout(1, 1, 32, 1, 1, 3, "full", 2, 4)
    path = tmp_path / "fsdp.yaml"
    path.write_text(configuration(LLAMA_70B, Job(4, 8, 4096, 256), layout, framework("fsdp")), encoding="utf-8")
    read = config_args.load_config_from_file(str(path))
    assert (read.distributed_type.value, read.num_machines, read.num_processes) == ("FSDP", 4, 32)
    assert read.fsdp_config["fsdp_activation_checkpointing"] is True


def test_attention_of_modules_keeps_what_its_masks_ask_for() -> None:
    policy = framework("fsdp").policy
    given, causal, either = (
        layer_activations(LLAMA_70B, replace(policy, masks=masks), "none", 1024, 2)
        for masks in ("given", "causal", "either")
    )
    # 8192 wide queries, and keys and values of 1024 that a given mask repeats 8 times.
    assert (given["query, key, value"], given["attention mask"]) == (6 * 8192, 1024)
    assert (causal["query, key, value"], causal["attention mask"]) == (2 * 8192 + 4 * 1024, 2048 * 2048 / 2048)
    assert either == given
    short = layer_activations(LLAMA_7B, replace(policy, masks="either"), "none", 256, 2)
    assert short["attention mask"] == 2048 * 2048 / 512  # the whole mask for few tokens is the more


@pytest.mark.parametrize(
    ("name", "zero", "data", "bytes_of_a_parameter"),
    [
        ("megatron", 0, 4, 18),
        ("megatron", 1, 4, 6 + 12 / 4),
        ("deepspeed", 0, 4, 16),
        ("deepspeed", 1, 4, 4 + 12 / 4),
        ("deepspeed", 2, 4, 2 + 14 / 4),
        ("deepspeed", 3, 4, 16 / 4),
        ("fsdp", 3, 4, 16 / 4),
    ],
)
def test_bytes_of_a_parameter(name: str, zero: int, data: int, bytes_of_a_parameter: float) -> None:
    layout = Layout(1, 1, data, 1, 1, zero, "full", 1, 2)
    parts = stage_memory(LLAMA_7B, Job(1, data, 128, 8), layout, framework(name), 0).parts
    total = parts["parameters"] + parts["gradients"] + parts["optimizer"]
    assert total == pytest.approx(bytes_of_a_parameter * LLAMA_7B.parameters)


def test_stages_hold_every_parameter_once() -> None:
    layout = Layout(4, 8, 1, 1, 1, 0, "none", 1, 16)
    held = [stage_parameters(LLAMA_70B, layout, stage)[0] for stage in range(8)]
    copies_of_norms = 3 * (LLAMA_70B.layers * 2 + 1) * LLAMA_70B.norm_parameters
    assert 4 * sum(held) == pytest.approx(LLAMA_70B.parameters + copies_of_norms)


def test_the_first_stage_keeps_a_micro_batch_for_each_stage() -> None:
    offered, job = framework("megatron"), Job(1, 4, 4096, 64)
    layout = Layout(1, 4, 1, 1, 1, 0, "none", 1, 64)
    first, third = (stage_memory(LLAMA_7B, job, layout, offered, stage).parts["activations"] for stage in (0, 2))
    assert first == pytest.approx(2 * third, rel=0.01)
    few = stage_memory(LLAMA_7B, job, Layout(1, 4, 1, 1, 1, 0, "none", 1, 2), offered, 0).parts["activations"]
    assert few == pytest.approx(first / 2, rel=0.01)


@pytest.mark.parametrize(("model", "nodes"), [(LLAMA_7B, 1), (LLAMA_13B, 1), (LLAMA_70B, 4), (MIXTRAL, 4)])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_published_models_get_a_plan_that_fits(model: Model, nodes: int, name: str) -> None:
    job = Job(nodes, 8, 4096, 256)
    choice = choose(model, job, framework(name), LIMIT)
    assert choice.fitting
    for one in choice.fitting:
        layout = one.layout
        assert one.memory.total <= LIMIT
        assert layout.tensor * layout.pipeline * layout.context * layout.data == job.devices
        assert layout.micro_batch * layout.micro_batches * layout.data == job.global_batch
        assert layout.tensor <= job.devices_per_node and layout.data % layout.expert == 0


def test_tensor_parallelism_within_a_node_comes_before_pipelines_across_nodes() -> None:
    small, middle, large = (
        choose(model, Job(nodes, 8, 4096, 256), framework("megatron"), LIMIT).fitting[0].layout
        for model, nodes in ((LLAMA_7B, 1), (LLAMA_13B, 1), (LLAMA_70B, 4))
    )
    assert (small.tensor, small.pipeline, small.zero) == (2, 1, 1)
    assert (middle.tensor, middle.pipeline, middle.zero) == (4, 1, 1)
    assert (large.tensor, large.pipeline, large.recompute) == (8, 4, "none")


def test_only_even_divisions_are_tried() -> None:
    odd = Model(6, 768, 12, 4, 64, 2048, 1000)
    found = list(layouts(odd, Job(2, 8, 1024, 48), framework("megatron")))
    assert {one.tensor for one in found} == {1, 2, 4} and {one.pipeline for one in found} == {1, 2}
    assert all(48 % (one.data * one.micro_batch) == 0 for one in found)


def test_what_is_sent() -> None:
    policy, job = framework("megatron").policy, Job(1, 8, 4096, 8)
    sent = communication(LLAMA_7B, job, Layout(8, 1, 1, 1, 1, 0, "none", 1, 8), policy)
    # Each of 32 layers: four all-reduces of 4096 x 4096 numbers in 16 bits, 2 x 7 / 8 of them sent; 8 micro-batches.
    assert sent["TP"] == 8 * 32 * 4 * 2 * 7 / 8 * 4096 * 4096 * 2
    assert {kind for kind, size in sent.items() if size} == {"TP"}
    data = communication(LLAMA_7B, job, Layout(1, 1, 8, 1, 1, 1, "none", 1, 1), policy)
    assert data["DP"] == pytest.approx((2 + 4) * LLAMA_7B.parameters * 7 / 8)


def test_experts_are_divided() -> None:
    offered, job = framework("megatron"), Job(1, 8, 4096, 64)
    whole, divided = (Layout(1, 1, 8, 1, expert, 1, "full", 1, 8) for expert in (1, 8))
    shared, experts = stage_parameters(MIXTRAL, divided, 0)
    assert experts * 8 == stage_parameters(MIXTRAL, whole, 0)[1] and shared + 8 * experts == MIXTRAL.parameters
    # Their optimizer was divided among eight ranks before, and each rank has an eighth of them now: the same.
    before, after = (stage_memory(MIXTRAL, job, one, offered, 0).parts["optimizer"] for one in (whole, divided))
    assert before == pytest.approx(after)
    assert communication(MIXTRAL, job, divided, offered.policy)["EP"] > 0


def test_nothing_fits() -> None:
    choice = choose(LLAMA_70B, Job(1, 8, 4096, 8), framework("megatron"), LIMIT)
    assert not choice.fitting and choice.nearest is not None and choice.nearest.memory.total > LIMIT
    assert not choose(LLAMA_7B, Job(1, 8, 4096, 3), framework("fsdp"), LIMIT).tried


def test_configurations_say_what_was_planned() -> None:
    job = Job(4, 8, 4096, 256)
    flags = configuration(LLAMA_70B, job, Layout(8, 2, 2, 1, 1, 1, "full", 1, 128), framework("megatron"))
    for flag in ("tensor-model-parallel-size 8", "pipeline-model-parallel-size 2", "num-query-groups 8", "swiglu"):
        assert f"  --{flag}\n" in flags
    assert "--recompute-granularity full" in flags and "--use-distributed-optimizer" in flags
    deep = json.loads(configuration(LLAMA_7B, job, Layout(1, 1, 32, 1, 1, 2, "none", 2, 4), framework("deepspeed")))
    assert deep["gradient_clipping"] == 1.0
    assert deep["zero_optimization"]["stage"] == 2
    sizes = deep["train_micro_batch_size_per_gpu"], deep["gradient_accumulation_steps"]
    assert sizes[0] * sizes[1] * 32 == deep["train_batch_size"] == 256
    text = configuration(LLAMA_7B, job, Layout(1, 1, 32, 1, 1, 3, "full", 1, 8), framework("fsdp"))
    assert "fsdp_activation_checkpointing: true" in text and "num_processes: 32" in text


def test_hccl_buffers_count_groups() -> None:
    job = Job(1, 8, 4096, 64)
    parts = estimate(LLAMA_7B, job, Layout(2, 1, 4, 1, 1, 1, "full", 1, 16), framework("megatron")).parts
    assert parts["HCCL buffers"] == 3 * 400 * 1024**2  # TP, DP, and all devices


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "holds no JSON object"),
        ("[]", "holds no JSON object"),
        ('{"model_type": "mamba"}', "mamba is not known"),
        ('{"model_type": "llama", "hidden_size": 8}', "num_attention_heads is missing"),
    ],
)
def test_a_config_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=said):
        model_from(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        model_from(tmp_path / "none.json")
