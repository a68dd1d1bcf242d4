"""What two runs are made of, written down and compared: each single difference is found, and alike runs are alike."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from npuport.errors import UserError  # noqa: E402
from npuport.precision.preflight import machine_facts  # noqa: E402
from npuport.precision.preflight.alone import judge_run  # noqa: E402
from npuport.precision.preflight.comparing import compare_runs  # noqa: E402
from npuport.precision.preflight.facts_of_run import writing_run  # noqa: E402
from npuport.precision.preflight.hyperparameters import judge_hyperparameters  # noqa: E402
from npuport.precision.preflight.reading import Facts, read_facts  # noqa: E402


@dataclass(frozen=True)
class Training:
    """A training of a few steps, and what can be different in it."""

    seed: int = 0
    width: int = 16
    dropout: float = 0.0
    optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW
    options: tuple[tuple[str, Any], ...] = (("lr", 1e-3),)
    order: Callable[[list[int]], Sequence[int]] = list
    values: Callable[[torch.Tensor], torch.Tensor] = lambda x: x
    prepare: Callable[[nn.Module], object] = lambda model: model
    decay: float = 1.0
    autocast: bool = False
    accumulate: int = 1
    arguments: tuple[str, ...] = ("--lr", "1e-3")

    def run(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        parser.add_argument("--run-name", default="x")
        parser.add_argument("--warmup", type=int, default=10)
        parser.add_argument("--hub-token", default="")
        parser.parse_args(self.arguments)
        samples = torch.Generator().manual_seed(7)
        inputs, labels = torch.randn(48, 8, generator=samples), torch.randint(0, 3, (48,), generator=samples)
        torch.manual_seed(self.seed)
        model = nn.Sequential(nn.Linear(8, self.width), nn.Dropout(self.dropout), nn.ReLU(), nn.Linear(self.width, 3))
        self.prepare(model)
        optimizer = self.optimizer(model.parameters(), **dict(self.options))
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, self.decay)
        loader = DataLoader(
            TensorDataset(self.values(inputs), labels), batch_size=8, sampler=self.order(list(range(48)))
        )
        for number, (x, y) in enumerate(loader):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            if number % self.accumulate == self.accumulate - 1:
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()


BASE = Training()


def facts_of(training: Training, folder: Path) -> dict[int, Facts]:
    with writing_run(folder):
        training.run()
    return read_facts(folder)


def compared(one: Training, other: Training, folder: Path) -> list[tuple[str, str]]:
    runs = facts_of(one, folder / "a"), facts_of(other, folder / "b")
    return [(found.check.name, str(found.text)) for found in compare_runs(*runs)]


def test_alike_runs_differ_in_nothing(tmp_path: Path) -> None:
    assert compared(BASE, BASE, tmp_path) == []


def rotated(order: list[int]) -> list[int]:
    return [order[start + (at + 1) % 8] for start in range(0, len(order), 8) for at in range(8)]


CHANGES = {
    "learning rate": (
        replace(BASE, options=(("lr", 2e-3),)),
        "optimizer",
        "lr of the optimizer (group 0.0): 0.001 and 0.002",
    ),
    "betas": (
        replace(BASE, options=(("lr", 1e-3), ("betas", (0.9, 0.95)))),
        "optimizer",
        "betas of the optimizer (group 0.0)",
    ),
    "other optimizer": (replace(BASE, optimizer=torch.optim.Adam), "optimizer", "optimizer: AdamW and Adam"),
    "decay": (replace(BASE, decay=0.5), "learning-rate", "learning rate from step 1 on: [0.001] and [0.0005]"),
    "wider": (replace(BASE, width=24), "model-structure", "parameter 0.weight: shape (16, 8) and (24, 8)"),
    "no bias": (
        replace(BASE, prepare=lambda model: setattr(model[0], "bias", None)),
        "model-structure",
        "parameter 0.bias: shape (16,) and missing",
    ),
    "other seed": (
        replace(BASE, seed=1),
        "initial-weights",
        "4 of 4 weights differ at the first forward pass, drawn or loaded",
    ),
    "one weight loaded": (
        replace(BASE, prepare=lambda model: model[3].weight.data.mul_(1.5)),
        "initial-weights",
        "1 of 4 weights differ at the first forward pass, drawn or loaded otherwise: 3.weight",
    ),
    "rounded weight": (
        replace(BASE, prepare=lambda model: model[3].weight.data.mul_(1 + 2e-7)),
        "initial-weights",
        "by rounding only, as far as statistics tell: 3.weight",
    ),
    "order within batches": (
        replace(BASE, order=rotated),
        "batch-order",
        "batch 0 from the data loader: the same samples in",
    ),
    "shuffled": (
        replace(BASE, order=lambda order: [order[at * 5 % 48] for at in range(48)]),
        "batch-order",
        "48 of 48 samples of the first 6 batches are the same, in another order",
    ),
    "one batch ahead": (
        replace(BASE, order=lambda order: order[8:]),
        "batch-order",
        "comes 1 batches later in the reference",
    ),
    "other preprocessing": (replace(BASE, values=lambda x: x * 1.0001), "batch-values", "nearly the same values (0)"),
    "other samples": (
        replace(BASE, values=lambda x: x + 5),
        "batches",
        "batch 0 from the data loader: other samples (0)",
    ),
    "dropout": (replace(BASE, dropout=0.1), "dropout", "dropout of 1: none and 0.1"),
    "autocast": (replace(BASE, autocast=True), "precision", "autocast: off and bfloat16"),
    "accumulation": (replace(BASE, accumulate=2), "scale-of-job", "forward passes for one step: 1 and 2"),
    "an argument": (replace(BASE, arguments=("--lr", "1e-3", "--warmup", "99")), "hyperparameter", "warmup: 10 and 99"),
    "another argument": (replace(BASE, arguments=("--run-name", "y", "--lr", "1e-3")), "argument", "run_name: x and y"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_one_difference_is_found_and_stands_first(change: str, tmp_path: Path) -> None:
    other, check, text = CHANGES[change]
    found = compared(BASE, other, tmp_path)
    assert found[0][0] == check, found
    assert text in found[0][1]


def test_another_seed_with_dropout_on_is_told_as_dropouts(tmp_path: Path) -> None:
    one = replace(BASE, dropout=0.2)
    found = compared(one, replace(one, seed=3), tmp_path)
    assert ("dropout", "seed of PyTorch: 0 and 3") in found


def test_weights_of_another_dtype_are_told_as_precision(tmp_path: Path) -> None:
    runs = [facts_of(BASE, tmp_path / name) for name in "ab"]
    for tensor in runs[1][0]["models"][0]["parameters"].values():
        tensor.update(dtype="bfloat16", hash="0")
    found = compare_runs(*runs)
    assert [str(one.text) for one in found] == ["4 weights have another dtype: 0.weight is float32 and bfloat16"]


def test_the_same_tokens_in_narrower_integers_are_the_same_batch(tmp_path: Path) -> None:
    runs = [facts_of(BASE, tmp_path / name) for name in "ab"]
    for batch in runs[1][0]["loaders"][0]["batches"]:
        batch["tensors"]["1"].update(dtype="int32", hash="0")
        batch["samples"] = []
    assert compare_runs(*runs) == []


def test_a_wrapped_model_is_the_same_model(tmp_path: Path) -> None:
    runs = [facts_of(BASE, tmp_path / name) for name in "ab"]
    for part in ("modules", "parameters"):
        entries = runs[1][0]["models"][0][part]
        runs[1][0]["models"][0][part] = {
            f"module._orig_mod.{path}" if path else path: one for path, one in entries.items()
        }
    assert compare_runs(*runs) == []


def test_what_a_run_does_not_tell_is_said_to_be_unknown(tmp_path: Path) -> None:
    runs = [facts_of(BASE, tmp_path / name) for name in "ab"]
    runs[1][0]["hyperparameters"] = {"arguments": {}, "globals": {}, "files": {}}
    found = [(one.check.name, str(one.text)) for one in compare_runs(*runs)]
    assert found == [("unknown", "hyper-parameters of the candidate: it parses no arguments and reads no file")]
    del runs[0][0]["hyperparameters"]["arguments"]["warmup"]
    runs[1][0]["hyperparameters"]["arguments"] = {"lr": 1e-3, "warmup": 5, "device": "cuda:0"}
    runs[0][0]["hyperparameters"]["arguments"]["device"] = "npu:0"
    runs[0][0]["hyperparameters"]["globals"] = {}
    found = [(one.check.name, str(one.text)) for one in compare_runs(*runs)]
    assert found == [("unknown", "warmup is 5 in one run; of the reference it is not known")]


def test_device_and_backend_names_are_alike(tmp_path: Path) -> None:
    runs = [facts_of(BASE, tmp_path / name) for name in "ab"]
    runs[0][0]["hyperparameters"]["arguments"]["backend"] = "cpu:gloo,cuda:nccl"
    runs[1][0]["hyperparameters"]["arguments"]["backend"] = "cpu:gloo,npu:hccl"
    assert compare_runs(*runs) == []


def test_versions_variables_and_world_size(tmp_path: Path) -> None:
    runs = [facts_of(BASE, tmp_path / name) for name in "ab"]
    runs[0][0]["versions"]["torch"], runs[1][0]["versions"]["torch"] = "2.13.0+cu126", "2.13.0+cpu"
    runs[0][0]["versions"]["numpy"], runs[1][0]["versions"]["numpy"] = "1.26.4", "2.4.0"
    runs[1][0]["variables"]["HCCL_DETERMINISTIC"] = "true"
    runs[1][0]["variables"]["HCCL_BUFFSIZE"] = "200"
    runs[1][0]["parallel"]["world_size"] = 8
    assert [(one.check.name, str(one.text)) for one in compare_runs(*runs)] == [
        ("scale-of-job", "processes: 1 and 8"),
        ("determinism", "HCCL_DETERMINISTIC: not set and true"),
        ("version", "numpy: 1.26.4 and 2.4.0"),
        ("variable", "HCCL_BUFFSIZE: not set and 200"),
    ]


def test_one_run_alone_says_what_is_random_in_it(tmp_path: Path) -> None:
    run = facts_of(replace(BASE, dropout=0.1), tmp_path)
    run[0]["loaders"][0]["sampler"] = "RandomSampler"
    run[0]["random"]["torch_seed"] = None
    names = [one.check.name for one in judge_run(run)]
    assert names[:3] == ["batch-order", "dropout", "seed"]
    assert "determinism" in names


def language_model(**changes: Any) -> Facts:
    """The facts of a language model of 7 B parameters, trained as published."""
    facts: Facts = {
        "models": [
            {
                "class": "LlamaForCausalLM",
                "modules": {
                    "": "LlamaForCausalLM()",
                    "embed": "Embedding(32000, 4096)",
                    "layers.0.self_attn": "LlamaAttention()",
                },
                "parameters": {"all": {"shape": [32, 6700, 31250], "dtype": "bfloat16"}},
            }
        ],
        "optimizers": [{"class": "AdamW", "groups": [{"betas": [0.9, 0.95], "weight_decay": 0.1}]}],
        "steps": [{"optimizer": 0, "lr": [3e-4 * step / 20]} for step in range(20)],
        "batches": [{"tensors": {"1.input_ids": {"shape": [16, 4096], "dtype": "int64"}}}],
        "parallel": {"world_size": 64},
        "clipping": 1.0,
    }
    return {**facts, **changes}


def ranges(**changes: Any) -> list[str]:
    return [str(one.text) for one in judge_hyperparameters(language_model(**changes))]


def test_hyperparameters_as_published_need_no_word() -> None:
    assert ranges() == []


def test_hyperparameters_far_from_published_ones_are_named() -> None:
    high = [{"optimizer": 0, "lr": [6e-3]}] * 20
    assert ranges(steps=high) == [
        "learning rate 0.006 is high for 6.7 B parameters: published 0.0003 (LLaMA (Touvron et al. table 2))",
        "no warm-up: the learning rate of the first 20 steps is the same",
    ]
    groups = [{"betas": [0.9, 0.999], "weight_decay": 0.0}, {"betas": [0.9, 0.999], "weight_decay": 0.0}]
    assert [text[:20] for text in ranges(optimizers=[{"class": "AdamW", "groups": groups}])] == [
        "beta2 0.999; publish",
        "weight decay 0.0; pu",
    ]
    assert "no gradient clipping" in ranges(clipping=None)[0]
    assert ranges(parallel={"world_size": 1}, batches=[{"tensors": {"x": {"shape": [1, 512], "dtype": "int64"}}}])[
        0
    ].startswith("512 tokens in a step")


def test_what_is_no_large_language_model_is_not_judged() -> None:
    high = [{"optimizer": 0, "lr": [6e-3]}] * 20
    facts = language_model(steps=high)
    facts["models"][0]["parameters"]["all"]["shape"] = [1000, 1000]
    assert list(judge_hyperparameters(facts)) == []
    facts = language_model(steps=high)
    facts["models"][0]["modules"] = {"": "ResNet()", "conv": "Conv2d(3, 64)"}
    assert list(judge_hyperparameters(facts)) == []
    facts = language_model(steps=high)
    facts["models"][0]["class"] = "FullyShardedDataParallel"
    assert list(judge_hyperparameters(facts)) == []


def test_clipping_is_seen_and_compared(tmp_path: Path) -> None:
    def run(limit: float | None, folder: Path) -> dict[int, Facts]:
        with writing_run(folder):
            torch.manual_seed(0)
            model = nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.ones(1, 2)).sum().backward()
            if limit is not None:
                nn.utils.clip_grad_norm_(model.parameters(), limit)
            optimizer.step()
        return read_facts(folder)

    found = compare_runs(run(1.0, tmp_path / "a"), run(None, tmp_path / "b"))
    assert "gradients are clipped to norm: 1.0 and none" in [str(one.text) for one in found]


def test_a_seed_that_nobody_set_is_known_as_such() -> None:
    state = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(67280421310721)
        from npuport.precision.preflight.training_facts import random_state

        assert random_state()["torch_seed"] is None
        torch.manual_seed(5)
        assert random_state()["torch_seed"] == 5
    finally:
        torch.set_rng_state(state)


def test_secrets_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefgh12345678")
    monkeypatch.setenv("WANDB_API_KEY", "s3cret")
    monkeypatch.setenv("MY_PASSWORD", "s3cret")
    monkeypatch.setenv("HCCL_SOMETHING_NEW", "s3cret")
    monkeypatch.setenv("HCCL_CONNECT_TIMEOUT", "1200")
    monkeypatch.setattr(
        sys, "argv", ["t.py", "--api-key", "s3cret", "--hub_token=s3cret", "hf_s3cretabcdef", "--lr", "1"]
    )
    facts = facts_of(replace(BASE, arguments=("--hub-token", "s3cret")), tmp_path)
    text = (tmp_path / "run.json").read_text(encoding="utf-8")
    assert "s3cret" not in text
    assert "hf_abc" not in text
    assert "MY_PASSWORD" not in text
    assert facts[0]["variables"]["HCCL_SOMETHING_NEW"] is None
    assert facts[0]["variables"]["HCCL_CONNECT_TIMEOUT"] == "1200"
    assert facts[0]["command"] == [
        "t.py",
        "--api-key",
        "(not kept)",
        "--hub_token=(not kept)",
        "(not kept)",
        "--lr",
        "1",
    ]


def test_tokens_of_a_vocabulary_are_no_secrets() -> None:
    assert machine_facts.plain({"pad_token": "<pad>", "tokenizer": "gpt2", "max_tokens": 5}) == {
        "pad_token": "<pad>",
        "tokenizer": "gpt2",
        "max_tokens": 5,
    }


def test_configuration_files_on_the_command_line_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("train:\n  lr: 0.1\n  betas: [0.9, 0.95]\n  api_key: x\n", encoding="utf-8")
    found = machine_facts.config_files([f"--config={tmp_path / 'a.yaml'}", "missing.yaml", "--x"])
    assert found == {"a.yaml": {"train.lr": 0.1, "train.betas": [0.9, 0.95], "train.api_key": "(not kept)"}}


def test_inputs_given_by_keyword_are_seen(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 4)

        def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return (self.table(input_ids).sum(-1) - labels).square().mean()

    with writing_run(tmp_path):
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model(input_ids=torch.arange(6).view(2, 3), labels=torch.ones(2, 3)).backward()
            optimizer.step()
    batch = read_facts(tmp_path)[0]["batches"][0]
    assert list(batch["tensors"]) == ["1.input_ids", "1.labels"]
    assert len(batch["samples"]) == 2


def test_following_leaves_nothing_behind_and_copies_of_the_model_stay_plain(tmp_path: Path) -> None:
    import copy

    before = torch.autograd.backward, torch.nn.utils.clip_grad_norm_, torch.amp.GradScaler.step
    with writing_run(tmp_path):
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        torch.save(copy.deepcopy(model), tmp_path / "model.pt")
    assert before == (torch.autograd.backward, torch.nn.utils.clip_grad_norm_, torch.amp.GradScaler.step)
    assert not model._forward_pre_hooks


@pytest.mark.parametrize("content", ["", "{", "[]", '{"npuport": "npuport-run/99"}'])
def test_what_is_no_such_file_is_one_clear_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match="no facts of a run"):
        read_facts(tmp_path)


def test_folders_without_facts_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="npuport run --preflight"):
        read_facts(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        read_facts(tmp_path / "missing")


def test_two_processes_of_one_rank_do_not_overwrite_each_other(tmp_path: Path) -> None:
    facts_of(BASE, tmp_path)
    facts_of(replace(BASE, seed=9), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.2.json", "run.json"]
    assert read_facts(tmp_path)[0]["random"]["torch_seed"] == 0
    assert json.loads((tmp_path / "run.2.json").read_text())["random"]["torch_seed"] == 9


def test_attention_that_drops_nothing_draws_no_random_numbers() -> None:
    from npuport.precision.preflight.training_facts import RandomCalls

    q = torch.randn(1, 2, 4, 8)
    for dropout, number in ((0.0, 0), (0.5, 1)):
        with RandomCalls() as counting:
            torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=dropout)
        assert min(sum(counting.counts.values()), 1) == number
