"""`npuport model bench`: what its chats are made of, that its times are of what it says, and its verdict."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from tiny_models import write_config, write_model

import npuport as package
from npuport.errors import UserError
from npuport.llm.devices import Device, chosen_device
from npuport.llm.generation.chat import Contents, Frame, first_prompt, frame_of, next_prompt
from npuport.llm.generation.figures import CaseTimes, Need, TurnTimes, judged, percentile, tokens_per_second
from npuport.llm.generation.measuring import Chats, chat, forward_of, measure
from npuport.sim import SimOptions

CPU = Device("cpu", 0, "", simulated=False)
SCHEMA = json.loads(
    (Path(package.__file__).parent / "report" / "schemas" / "npuport-generation-1.json").read_text(encoding="utf-8")
)
pytestmark = pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
SHORT = ["--context", "24", "--message-tokens", "5", "--answer-tokens", "4", "--turns", "2", "--repeats", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with chosen_device("cpu"):
        return write_model(tmp_path_factory.mktemp("model") / "tiny")


def test_percentiles_are_numpys() -> None:
    numpy = pytest.importorskip("numpy")
    values = [5.0, 1.0, 4.0, 2.5]
    for share in (0.0, 0.5, 0.95, 0.99, 1.0):
        assert percentile(values, share) == pytest.approx(numpy.percentile(values, 100 * share))
    assert percentile([3.0], 0.99) == 3.0


def test_a_rate_counts_slow_tokens_in_full() -> None:
    assert tokens_per_second([0.01, 0.01, 0.08]) == pytest.approx(30)


def test_a_need_is_met_by_every_case_or_not_at_all() -> None:
    fast = CaseTimes(1, 8, (TurnTimes(1, 8, 8, 0.1, 0.1, (0.01,) * 4),), 0)
    slow = CaseTimes(4, 8, (TurnTimes(1, 8, 8, 0.3, 0.3, (0.05,) * 4),), 0)
    full = CaseTimes(8, 8, (), 0)
    found = judged([fast, slow, full], Need(50, 0.2))
    assert [(one.batch, one.what, one.met) for one in found] == [
        (1, "tokens/s", True),
        (1, "first token", True),
        (4, "tokens/s", False),
        (4, "first token", False),
        (8, "tokens/s", False),
        (8, "first token", False),
    ]
    assert found[0].measured == pytest.approx(100) and found[4].measured is None
    assert judged([fast], Need(None, None)) == []


def test_the_template_stands_around_messages(folder: Path) -> None:
    with chosen_device("cpu"):
        from transformers import AutoTokenizer

        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    frame = frame_of(tokenizer)
    assert frame.templated
    # What the pieces say together is what the template says of the same chat.
    said = [*frame.opening, *tokenizer.encode("a"), *frame.answer, *tokenizer.encode("b"), *frame.following]
    said += [*tokenizer.encode("c"), *frame.answer]
    chat_of_three = [("user", "a"), ("assistant", "b"), ("user", "c")]
    messages = [{"role": role, "content": text} for role, text in chat_of_three]
    whole = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert tokenizer.decode(said) == whole

    tokenizer.chat_template = "{{ messages[0]['content'] | upper }}"
    assert frame_of(tokenizer) == Frame(opening=(tokenizer.bos_token_id,)), "it changes what it is given"
    assert frame_of(None) == Frame()


def test_prompts_have_the_length_asked_for() -> None:
    frame = Frame((1, 2), (3,), (4, 5))
    first = first_prompt(frame, Contents(50, [7, 8]), 3, 20)
    assert [len(row) for row in first] == [20, 20, 20] and all(row[:2] == [1, 2] and row[-1] == 3 for row in first)
    assert first[0] != first[1], "the rows of a batch differ"
    later = next_prompt(frame, Contents(50, [7, 8]), 3, 20)
    assert all(len(row) == 23 and not {7, 8} & set(row) for row in later)
    with pytest.raises(UserError, match="too short"):
        first_prompt(frame, Contents(50, []), 1, 3)


def test_the_cache_between_turns_changes_no_answer(folder: Path) -> None:
    with chosen_device("cpu"):
        import torch
        from transformers import AutoModelForCausalLM

        model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    turns = chat(forward_of(model, CPU), CPU, [[[5, 6, 7], [9, 3, 2]], [[8, 1], [4, 4]]], 5)
    with torch.inference_mode():
        for row in (0, 1):
            tokens = turns[1].history[row]
            # 3 of the prompt, 5 answered, 2 of the next message: each answer is what the whole context before it says.
            for place in range(3, 8):
                assert model(torch.tensor([tokens[:place]])).logits[0, -1].argmax() == tokens[place]
    assert [(len(one.history[0]), one.computed, len(one.later)) for one in turns] == [(3, 3, 4), (10, 3, 4)]


def test_times_are_of_the_token_they_are_said_of() -> None:
    import torch

    def model(input_ids: Any, past_key_values: Any, use_cache: bool) -> Any:
        assert use_cache
        before = past_key_values or 0
        time.sleep(0.004 * input_ids.shape[1])
        logits = torch.zeros(*input_ids.shape, 10)
        return SimpleNamespace(logits=logits, past_key_values=before + input_ids.shape[1])

    class Model:
        forward = staticmethod(model)
        __call__ = staticmethod(model)

    loaded: Any = SimpleNamespace(model=Model(), tokenizer=None, longest=None, vocabulary=10)
    (case,) = measure(loaded, CPU, Chats((1,), (10,), 2, 4, 3, 0, 1), Frame(), lambda *_: None)
    first, second = case.turns
    assert (second.context, second.computed) == (10 + 3 + 4, 4 + 1)
    # Sleep is never shorter than asked for: 4 ms of each token.
    assert first.first >= 0.04 and second.first >= 0.02 and second.first_afresh >= 0.068
    assert len(case.later) == 4 and all(one >= 0.004 for one in case.later)


def test_a_case_without_memory_is_said_and_the_next_one_measured() -> None:
    import torch

    class Model:
        def forward(self, input_ids: Any, past_key_values: Any, use_cache: bool) -> Any:  # noqa: ARG002
            if input_ids.shape[0] > 2:
                raise torch.OutOfMemoryError("no")
            return SimpleNamespace(logits=torch.zeros(*input_ids.shape, 10), past_key_values=1)

        __call__ = forward

    loaded: Any = SimpleNamespace(model=Model(), tokenizer=None, longest=None, vocabulary=10)
    cases = list(measure(loaded, CPU, Chats((1, 4), (4, 6), 1, 2, 2, 0, 1), Frame(), lambda *_: None))
    assert [(one.batch, one.context, one.out_of_memory) for one in cases] == [
        (1, 4, False),
        (4, 4, True),
        (1, 6, False),
        (4, 6, True),
    ]


def test_json_follows_its_schema_and_the_need_decides(
    npuport: Callable[..., int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = npuport("model", "bench", folder, "--device", "cpu", *SHORT, "--batch", "2,1", "--need", "0.001", "--json")
    said = json.loads(capsys.readouterr().out)
    jsonschema.validate(said, SCHEMA)
    assert code == 0 and said["met"] is True and said["model"]["chat_template"]
    assert [(one["batch"], one["context"]) for one in said["cases"]] == [(1, 24), (2, 24)]
    # The second turn: the answer's last token, the template's six, the message's five.
    assert [(one["context"], one["computed"]) for one in said["cases"][1]["turns"]] == [(24, 24), (39, 12)]
    assert npuport("model", "bench", folder, "--device", "cpu", *SHORT, "--need-first", "0.0001ms") == 1
    assert "NOT MET" in capsys.readouterr().out


def test_a_config_is_enough(
    npuport: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")
    write_config(tmp_path)
    place = tmp_path / "config.json"
    assert npuport("model", "bench", place, "--device", "cpu", "--random-weights", "--dtype", "bfloat16", *SHORT) == 0
    said = capsys.readouterr().out
    assert "in bfloat16 on cpu" in said and "The weights are random" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--device", "tpu"], "--device takes auto"),
        (["--device", "cuda:77"], "there is no device cuda:77"),
        (["--device", "cpu"], "holds no weights"),
        (["--device", "cpu", "--random-weights", "--batch", "0"], "--batch takes numbers"),
        (["--device", "cpu", "--random-weights", "--need-first", "soon"], "--need-first takes a time"),
        (["--device", "cpu", "--random-weights", "--dtype", "int3"], "--dtype takes auto, bfloat16"),
        (["--device", "cpu", "--random-weights", "--context", "500"], "longest context is 512"),
    ],
)
def test_misuse_is_named(
    npuport: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")
    write_config(tmp_path)
    assert npuport("model", "bench", tmp_path, *options) == 2
    assert said in capsys.readouterr().err


def test_folders_that_are_no_language_model(
    npuport: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")
    assert npuport("model", "bench", tmp_path, "--device", "cpu") == 2
    assert "holds no config.json" in capsys.readouterr().err
    (tmp_path / "config.json").write_text('{"model_type": "vit"}', encoding="utf-8")
    assert npuport("model", "bench", tmp_path, "--device", "cpu", "--random-weights") == 2
    assert "no language model can be made" in capsys.readouterr().err


def test_a_model_that_does_not_fit_is_said(
    npuport: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with chosen_device("cpu"):
        import torch
        from transformers import PreTrainedModel

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("NPU out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setenv("NPUPORT_LANG", "en")
    monkeypatch.setattr(PreTrainedModel, "to", full)
    write_config(tmp_path)
    assert npuport("model", "bench", tmp_path, "--device", "cpu", "--random-weights") == 2
    assert "does not fit into the memory of cpu" in capsys.readouterr().err


def test_a_model_without_keys_and_values_is_said() -> None:
    import torch

    class Recurrent:
        def forward(self, input_ids: Any, **_: Any) -> Any:
            return SimpleNamespace(logits=torch.zeros(*input_ids.shape, 10), state=1)

        __call__ = forward

    with pytest.raises(UserError, match="Recurrent hands no keys and values on"):
        forward_of(Recurrent(), CPU)([[1, 2]], None)


def test_on_the_simulated_npu(simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    write_config(tmp_path, dtype="bfloat16")
    command = ["-m", "npuport", "model", "bench", str(tmp_path), "--random-weights", "--json", *SHORT]
    done = simulated(command, SimOptions())
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    jsonschema.validate(said, SCHEMA)
    assert said["device"] == {"name": "npu:0", "model": "Ascend910B3", "simulated": True}
    assert said["times_are_of_hardware"] is False
    # At the least the weights, of two bytes each.
    assert said["cases"][0]["peak_bytes"] > 2 * said["model"]["parameters"]


def test_times_of_the_simulated_npu_meet_no_need(
    npuport: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")
    simulated_npu = Device("npu", 0, "Ascend910B3", simulated=True)
    monkeypatch.setattr("npuport.llm.devices.chosen_device", lambda _: nullcontext(simulated_npu))
    assert npuport("model", "bench", tmp_path, "--need", "50") == 2
    assert "not those of hardware" in capsys.readouterr().err
