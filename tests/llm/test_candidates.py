"""`npuport model choose`: sizes and arithmetic against what transformers builds, and why models are refused."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tiny_models import write_config

import npuport as package
from npuport import facts
from npuport.llm.candidates.arithmetic import Chats, cache_bytes, divides, load, touched_experts
from npuport.llm.candidates.choosing import Candidate, Machine, Need, assess, known_candidates, ranked, sizes
from npuport.llm.devices import chosen_device
from npuport.llm.planning.model import model_from

SCHEMA = json.loads(
    (Path(package.__file__).parent / "report" / "schemas" / "npuport-model-choice-1.json").read_text(encoding="utf-8")
)
GIB = 1024**3
A2 = Machine("A2", 1, 0.9 * 64 * GIB, 1.6e12)
TABLE = {one.name: one for one in facts.all_language_models()}


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("Llama-2-7B", 6_738_415_616),
        ("Llama-3-8B", 8_030_261_248),
        ("Llama-3.1-70B", 70_553_706_496),
        ("Llama-3.2-1B", 1_235_814_400),
        ("Mixtral-8x7B", 46_702_792_704),
        ("Qwen2.5-7B", 7_615_616_512),
        ("Qwen3-8B", 8_190_735_360),
        ("Qwen3-30B-A3B", 30_532_122_624),
    ],
)
def test_sizes_give_the_parameters_of_the_published_checkpoints(name: str, published: int) -> None:
    assert sizes(TABLE[name]).parameters == pytest.approx(published, rel=1e-4)


def test_names_say_the_parameters() -> None:
    for name, fact in TABLE.items():
        said = name.split("-A")[0].rsplit("-", 1)[-1]
        if said.endswith("B") and "x" not in said:
            assert sizes(fact).parameters == pytest.approx(float(said[:-1]) * 1e9, rel=0.3), name


def test_sizes_are_compared_with_the_scripts_they_come_from() -> None:
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "check_model_sizes.py"))
    row = {"name": "m", "layers": "4", "hidden": "8", "heads": "2", "kv_heads": "2", "head_width": "4", "ffn": "9"}
    row |= {"vocabulary": "50", "experts": "1", "top_k": "1", "tied": "no"}
    script = "FFN=10\n--num-layers 4 --hidden-size 8 --num-attention-heads 2 --ffn-hidden-size ${FFN}"
    assert list(tool["differences"](row, script)) == [
        "m: ffn 9, the script says 10",
        "m: tied no, the script says yes",
    ]


@pytest.mark.parametrize("tied", [True, False])
def test_bytes_are_those_of_the_model_that_transformers_builds(tmp_path: Path, tied: bool) -> None:
    write_config(tmp_path, model_type="llama", architectures=["LlamaForCausalLM"], tie_word_embeddings=tied)
    model = model_from(tmp_path)
    with chosen_device("cpu"):
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        built = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(tmp_path)).to(torch.bfloat16)
        output = built(torch.zeros(3, 7, dtype=torch.long), use_cache=True)
    cache = getattr(output, "cache", None) or output.past_key_values
    held = sum(one.nbytes for layer in cache.layers for one in (layer.keys, layer.values))
    found = load(model, Chats(7, 3), 1, "bfloat16")
    assert found.weights == sum(one.nbytes for one in built.parameters())
    assert found.cache == held and found.buffers == 0
    # Every weight is read but the table of embeddings, of which a row is; a tied one is read as the head.
    table = 0 if tied else built.get_input_embeddings().weight.nbytes
    assert found.read == found.weights - table + held


def test_devices_share_weights_and_heads() -> None:
    model = sizes(TABLE["Qwen3-8B"])
    one, eight = (load(model, Chats(4096, 4), devices, "bfloat16") for devices in (1, 8))
    assert eight.weights == pytest.approx(one.weights / 8, rel=1e-3) and eight.cache == one.cache / 8
    assert cache_bytes(model, 16) == cache_bytes(model, 8), "keys and values are copied beyond their heads"
    assert divides(model, 16) and not divides(model, 3)
    assert load(model, Chats(1, 1), 1, "int8").weights == pytest.approx(
        one.weights - model.layers * (model.attention_parameters + model.expert_parameters)
    )


def test_more_chats_touch_more_experts() -> None:
    model = replace(sizes(TABLE["Mixtral-8x7B"]), experts=4, top_k=1)
    assert touched_experts(model, 1) == 1
    assert touched_experts(model, 2) == pytest.approx(1.75)  # of 16 pairs 4 agree: (4 x 1 + 12 x 2) / 16
    assert touched_experts(model, 1000) == pytest.approx(4)
    assert touched_experts(sizes(TABLE["Qwen3-8B"]), 9) == 1


def test_each_reason_refuses() -> None:
    large, small = Candidate("70B", sizes(TABLE["Llama-3.1-70B"]), TABLE["Llama-3.1-70B"]), TABLE["Llama-2-7B"]
    need = Need(Chats(4096, 1), 50)
    found = assess(large, need, A2, "bfloat16")
    assert found.refusals == ("memory", "rate") and found.rate == pytest.approx(1.6e12 / found.load.read)
    older = Candidate("7B", sizes(small), small)
    asked = Need(Chats(8192, 1), quality=50, licences=("apache-2.0",), served=True)
    assert assess(older, asked, replace(A2, family="310P"), "float16").refusals == (
        "context",
        "quality",
        "licence",
        "serving",
    )
    assert assess(older, need, replace(A2, devices=3), "float16").refusals == ("division",)


def test_what_no_source_says_is_unknown_and_refuses_nothing() -> None:
    fact = replace(TABLE["Qwen3-8B"], context=None, licence=None, mmlu=None)
    asked = Need(Chats(4096, 1), 50, 70, ("apache-2.0",))
    found = assess(Candidate("x", sizes(fact), fact), asked, replace(A2, bandwidth=None), "bfloat16")
    assert found.refusals == () and set(found.unknown) == {"rate", "context", "quality", "licence"}
    assert found.rate is None


def test_the_best_known_quality_comes_first() -> None:
    need = Need(Chats(4096, 4), 50, 70, ("apache-2.0",))
    found = ranked([assess(one, need, A2, "bfloat16") for one in known_candidates(facts.all_language_models())])
    names = [one.candidate.name for one in found]
    assert names[:2] == ["Qwen3-14B", "Qwen3-8B"] and "Qwen3-32B" not in names and "Llama-3-8B" not in names
    assert all(one.rate is not None and one.rate >= 50 and one.load.held <= A2.memory for one in found)


def test_json_follows_its_schema(
    npuport: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*options: object) -> tuple[int, dict[str, list[dict[str, object]]]]:
        code = npuport("model", "choose", "--json", *options)
        document = json.loads(capsys.readouterr().out)
        jsonschema.validate(document, SCHEMA)
        return code, document

    write_config(tmp_path, model_type="llama")
    code, found = said("--config", tmp_path, "--need", 50, "--licence", "Apache-2.0,Llama-3-Community")
    assert code == 0 and {one["licence"] for one in found["fitting"]} == {"Apache-2.0", "Llama-3-Community", None}
    assert str(tmp_path) in [one["name"] for one in found["fitting"]]
    code, found = said("--need", 100000)
    assert code == 1 and not found["fitting"] and len(found["refused"]) == len(TABLE)
    code, found = said("--task", "extraction")
    assert code == 0 and {one["architecture"] for one in found["library_models"]} == {"encoder-only"}


def test_the_table_says_what_fits_and_why_not(
    npuport: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")
    assert npuport("model", "choose", "--need", 50, "--mmlu", 80, "--explain") == 0
    said = capsys.readouterr().out
    assert "Qwen3-32B: 62.0 GiB do not fit into 57.6; at most 25 tokens/s, needed 50" in said
    # Of those that are left Qwen3-30B-A3B has the best published MMLU.
    assert "cache: 2 x 48 layers x 4 heads x 128 x 2 = 98,304 bytes a token; x 4096 x 1 = 402,653,184" in said
    assert "experts that a step reads of 128: 8.0" in said
    assert npuport("model", "choose", "--chip", "Ascend910B4") == 0
    assert "give it with --bandwidth" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--task", "painting"], "--task takes chat, writing"),
        (["--dtype", "int3"], "--dtype takes bfloat16"),
        (["--chip", "A100"], "unknown chip A100"),
        (["--chip", "Ascend910B1"], "--memory GIB"),
        (["--chip", "Ascend910A"], "has no bfloat16"),
        (["--config", "nowhere.json"], "nowhere.json cannot be read"),
    ],
)
def test_misuse_is_named(
    npuport: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")
    assert npuport("model", "choose", *options) == 2
    assert said in capsys.readouterr().err
