"""`npuport check-config`: configurations as published start and need no word; planted faults are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuport.errors import UserError
from npuport.llm.checking.checking import Checked, check_files
from npuport.llm.checking.training import Given, size_in

LLAMA_2_7B = {
    **{"num-layers": 32, "hidden-size": 4096, "ffn-hidden-size": 11008, "num-attention-heads": 32},
    **{"padded-vocab-size": 32000, "seq-length": 4096, "max-position-embeddings": 4096},
    **{"micro-batch-size": 1, "global-batch-size": 1024, "train-iters": 500000},
    **{"tensor-model-parallel-size": 2, "pipeline-model-parallel-size": 4, "context-parallel-size": 1},
    **{"lr": "3e-4", "min-lr": "3e-5", "lr-decay-style": "cosine", "lr-warmup-iters": 2000},
    **{"weight-decay": 0.1, "clip-grad": 1.0, "adam-beta2": 0.95},
    **{"bf16": "", "swiglu": "", "sequence-parallel": "", "untie-embeddings-and-output-weights": ""},
}
ZERO_3 = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3},
}
ALPACA = {
    "model_name_or_path": "meta-llama/Llama-2-7b-hf",
    "stage": "sft",
    "finetuning_type": "full",
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 8,
    "learning_rate": "2e-5",
    "lr_scheduler_type": "cosine",
    "warmup_ratio": 0.03,
    "bf16": True,
}


def megatron(folder: Path, *, devices: int = 8, **changed: Any) -> Checked:
    given = {**LLAMA_2_7B, **{name.replace("_", "-"): value for name, value in changed.items()}}
    words = " ".join(f"--{name} {value}" for name, value in given.items() if value is not None)
    script = folder / "train.sh"
    script.write_text(
        f'ARGS="{words}"\ntorchrun --nproc_per_node {devices} --nnodes 1 pretrain_gpt.py $ARGS\n', encoding="utf-8"
    )
    [checked] = check_files([script], Given())
    return checked


def trainer(
    folder: Path, deepspeed: dict[str, Any] | None = None, given: Given | None = None, **changed: Any
) -> Checked:
    arguments = {**ALPACA, **changed}
    if deepspeed is not None:
        (folder / "ds.json").write_text(json.dumps(deepspeed), encoding="utf-8")
        arguments["deepspeed"] = "ds.json"
    (folder / "args.json").write_text(json.dumps(arguments), encoding="utf-8")
    [checked] = check_files([folder / "args.json"], given or Given())
    return checked


def troubles(checked: Checked) -> list[str]:
    return [one.check.name for one in checked.contradictions]


def far(checked: Checked) -> list[str]:
    return [one.quantity for one in checked.judgements if one.status != "usual"]


def test_a_published_pretraining_needs_no_word(tmp_path: Path) -> None:
    checked = megatron(tmp_path)
    assert (far(checked), troubles(checked), checked.unknown, checked.is_faulty) == ([], [], [], False)
    recipe = checked.told.recipe
    assert recipe.parameters == 6_738_415_616
    assert recipe.batch_tokens == 4096 * 1024
    assert recipe.tokens == 4096 * 1024 * 500_000
    assert (recipe.final_share, recipe.warmup_share) == (pytest.approx(0.1), 0.004)


@pytest.mark.parametrize(
    ("changed", "trouble"),
    [
        ({"pipeline_model_parallel_size": 8}, "megatron-world"),
        ({"global_batch_size": 1023, "tensor_model_parallel_size": 1}, "megatron-batch"),
        ({"num_attention_heads": 31, "kv_channels": 128}, "megatron-heads"),
        ({"num_attention_heads": 31, "tensor_model_parallel_size": 1}, "megatron-head-width"),
        ({"group_query_attention": "", "num_query_groups": 3}, "megatron-groups"),
        ({"num_layers": 30}, "megatron-layers"),
        ({"num_layers_per_virtual_pipeline_stage": 3}, "megatron-virtual-layers"),
        ({"context_parallel_size": 2, "pipeline_model_parallel_size": 1, "seq_length": 4094}, "megatron-context"),
        (
            {"context_parallel_size": 3, "context_parallel_algo": "ulysses_cp_algo", "devices": 24},
            "mindspeed-ulysses",
        ),
        ({"expert_model_parallel_size": 2}, "megatron-no-experts"),
        ({"expert_model_parallel_size": 2, "num_experts": 7}, "megatron-experts"),
        ({"max_position_embeddings": 2048}, "megatron-positions"),
        ({"min_lr": "1e-3"}, "megatron-rates"),
        ({"fp16": ""}, "megatron-precisions"),
        ({"lr_warmup_fraction": 0.01}, "megatron-warm-up"),
        ({"train_samples": 100}, "megatron-length"),
        ({"recompute_granularity": "selective", "recompute_method": "uniform"}, "megatron-selective"),
        ({"overlap_param_gather": "", "use_distributed_optimizer": ""}, "megatron-overlap"),
        ({"tensor_model_parallel_size": 1}, "megatron-sequence-parallel"),
        (
            {"num_layers_per_virtual_pipeline_stage": 4, "pipeline_model_parallel_size": 1},
            "megatron-virtual-pipeline",
        ),
    ],
)
def test_contradictions_of_megatron(tmp_path: Path, changed: dict[str, Any], trouble: str) -> None:
    assert trouble in troubles(megatron(tmp_path, **changed))


def test_uneven_stages_that_are_spread_by_options_are_right(tmp_path: Path) -> None:
    spread = megatron(tmp_path, num_layers=30, decoder_first_pipeline_num_layers=6)
    assert troubles(spread) == []
    assert troubles(megatron(tmp_path, num_layers="$LAYERS")) == []  # not known


def test_defaults_of_megatron_are_known(tmp_path: Path) -> None:
    checked = megatron(tmp_path, adam_beta2=None, clip_grad=None, min_lr=None, lr_decay_style=None)
    recipe = checked.told.recipe
    assert (recipe.beta2, recipe.clipping, recipe.final_share) == (0.999, 1.0, 0.0)
    assert far(checked) == ["beta2"]


def test_a_decay_that_the_training_does_not_reach(tmp_path: Path) -> None:
    # Half of a linear decay from 3e-4 to 3e-5.
    recipe = megatron(tmp_path, lr_decay_iters=1_000_000, lr_decay_style="linear").told.recipe
    assert recipe.final_share == pytest.approx(0.55)


@pytest.mark.parametrize(
    ("changed", "purpose"),
    [
        ({}, "pretraining"),
        ({"load": "ckpt"}, "continued pretraining"),
        ({"load": "ckpt", "save": "ckpt"}, "pretraining"),
        ({"finetune": "", "stage": "sft"}, "fine-tuning"),
        ({"lora_r": 8}, "lora"),
        ({"img_h": 448}, "unknown"),
    ],
)
def test_what_a_script_trains(tmp_path: Path, changed: dict[str, Any], purpose: str) -> None:
    assert megatron(tmp_path, **changed).told.recipe.purpose == purpose


def test_a_published_fine_tuning_needs_no_word(tmp_path: Path) -> None:
    checked = trainer(tmp_path, ZERO_3, Given(devices=4, sequence=512))
    assert (far(checked), troubles(checked), checked.is_faulty) == ([], [], False)
    assert checked.told.recipe.parameters == 7_000_000_000
    assert checked.told.recipe.batch_tokens == 4 * 8 * 4 * 512
    assert checked.told.recipe.clipping == 1.0  # of TrainingArguments, through "auto"


@pytest.mark.parametrize(
    ("changed", "trouble"),
    [
        ({"train_batch_size": 100}, "deepspeed-mismatch"),
        ({"train_micro_batch_size_per_gpu": 2}, "deepspeed-mismatch"),
        ({"gradient_clipping": 0.5}, "deepspeed-mismatch"),
        ({"bf16": {"enabled": False}}, "deepspeed-mismatch"),
        ({"optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}}, "deepspeed-mismatch"),
        ({"gradient_clipping": None}, "deepspeed-clipping"),
        ({"bf16": {"enabled": True}, "fp16": {"enabled": True}}, "deepspeed-precisions"),
        ({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}, "deepspeed-offload"),
        (
            {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8},
            "deepspeed-batch",
        ),
    ],
)
def test_contradictions_with_deepspeed(tmp_path: Path, changed: dict[str, Any], trouble: str) -> None:
    deepspeed = {name: value for name, value in {**ZERO_3, **changed}.items() if value is not None}
    assert trouble in troubles(trainer(tmp_path, deepspeed, Given(devices=4)))


def test_the_trainer_refuses_what_is_called_a_mismatch(tmp_path: Path) -> None:
    """The Trainer's own comparison, for the values that need no model."""
    integration = pytest.importorskip("transformers.integrations.deepspeed", exc_type=ImportError)
    from types import SimpleNamespace

    arguments: Any = SimpleNamespace(
        **{"world_size": 4, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "max_grad_norm": 1.0},
        **{"learning_rate": 2e-5, "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8, "weight_decay": 0.0},
        **{"fp16": False, "fp16_full_eval": False, "bf16": True, "bf16_full_eval": False, "save_on_each_node": False},
        fp16_opt_level="O1",
        fp16_backend="auto",
    )
    wrong = {
        **ZERO_3,
        "train_batch_size": 100,
        "gradient_clipping": 0.5,
        "fp16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "weight_decay": 0.0, "betas": [0.9, 0.999]}},
    }
    base = pytest.importorskip(
        "accelerate.utils.deepspeed"
    ).HfDeepSpeedConfig  # what it is where DeepSpeed is installed
    config: Any = object.__new__(type("Config", (integration.HfTrainerDeepSpeedConfig, base), {}))
    config.config, config.mismatches, config._dtype = json.loads(json.dumps(wrong)), [], None
    config.trainer_config_process(arguments)
    theirs = {line.split("=")[0].removeprefix("- ds ") for line in config.mismatches}
    ours = {
        str(one.text).split(" is ")[0]
        for one in trainer(tmp_path, wrong, Given(devices=4)).contradictions
        if one.check.name == "deepspeed-mismatch"
    }
    assert ours == theirs == {"train_batch_size", "gradient_clipping", "fp16.enabled", "optimizer.params.lr"}


def test_yaml_of_llama_factory_and_accelerate(tmp_path: Path) -> None:
    lora = tmp_path / "lora.yaml"
    lora.write_text(
        "stage: sft\nfinetuning_type: lora\nlearning_rate: 1e-4\nper_device_train_batch_size: 1\n"
        "gradient_accumulation_steps: 8\nnum_train_epochs: 3.0\nlr_scheduler_type: cosine\nwarmup_ratio: 0.1\n"
        "bf16: true\ncutoff_len: 2048\nmodel_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\n",
        encoding="utf-8",
    )
    accelerate = tmp_path / "fsdp.yaml"
    accelerate.write_text("distributed_type: FSDP\nnum_processes: 8\n", encoding="utf-8")
    [checked] = check_files([lora, accelerate], Given())
    recipe = checked.told.recipe
    assert (recipe.purpose, recipe.rate, recipe.parameters) == ("lora", 1e-4, 8_000_000_000)
    assert recipe.batch_tokens == 8 * 8 * 2048
    assert far(checked) == []


def test_files_beside_a_training(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                **{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32},
                **{"intermediate_size": 11008, "vocab_size": 32000},
            }
        ),
        encoding="utf-8",
    )
    (tmp_path / "args.json").write_text(json.dumps({**ALPACA, "deepspeed": {**ZERO_3, "gradient_clipping": 2}}))
    files = [tmp_path / "args.json", tmp_path / "config.json"]
    [checked] = check_files(files, Given())
    assert checked.told.recipe.parameters == 6_738_415_616
    assert troubles(checked) == ["deepspeed-mismatch"]  # of the file within the arguments
    with pytest.raises(UserError, match="both model"):
        check_files([*files, tmp_path / "config.json"], Given())


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("meta-llama/Meta-Llama-3-8B-Instruct", 8_000_000_000),
        ("Qwen/Qwen2.5-0.5B", 500_000_000),
        ("mistralai/Mixtral-8x7B-v0.1", None),
        ("Qwen/Qwen3-30B-A3B", None),
        ("gpt2", None),
    ],
)
def test_sizes_in_names(name: str, size: int | None) -> None:
    assert size_in(name) == size


def test_the_command(tmp_path: Path, npuport: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    megatron(tmp_path)
    assert npuport("check-config", tmp_path / "train.sh") == 0
    said = capsys.readouterr().out
    assert "pretraining, 6.7 B parameters, 8 devices" in said
    assert "✓ learning rate: 0.0003, --lr" in said
    megatron(tmp_path, lr="1e-2", num_layers=30)
    assert npuport("check-config", tmp_path / "train.sh", "--json") == 1
    [training] = json.loads(capsys.readouterr().out)["trainings"]
    assert [one["status"] for one in training["judgements"] if one["quantity"] == "rate"] == ["unusual"]
    assert [one["check"] for one in training["contradictions"]] == ["megatron-layers"]
    assert npuport("check-config", tmp_path / "train.sh", "--for", "nothing") == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "cannot be read"),
        ("a.yaml", "learning_rate: 1\nbetas: [1,\n", "line 3, column 1"),
        ("a.json", '{"lines": 3}', "no configuration that npuport knows"),
        ("a.sh", "echo hello\n", "no configuration that npuport knows"),
        ("config.json", '{"model_type": "llama"}', "is missing"),
        ("fsdp.yaml", "distributed_type: FSDP\nnum_processes: 8\n", "says nothing of a training"),
    ],
)
def test_what_is_no_configuration_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as raised:
        check_files([tmp_path / name], Given())
    assert said in str(raised.value)
    assert name in str(raised.value)
