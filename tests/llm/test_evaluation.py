"""`npuport model evaluate` and `compare`: lm-eval offline on a tiny model, ROUGE of Chinese, what is the same."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tiny_models import write_config, write_model

import npuport as package
from npuport.llm.devices import chosen_device
from npuport.llm.evaluation.comparing import compare, paired_chance, unpaired_chance
from npuport.llm.evaluation.rouge import Tokenizer, rouge
from npuport.llm.evaluation.scores import Results, Score, read_results
from npuport.sim import SimOptions

needs_lm_eval = pytest.mark.skipif(
    find_spec("lm_eval") is None or find_spec("rouge_score") is None, reason="lm_eval is not installed"
)
SCHEMAS = Path(package.__file__).parent / "report" / "schemas"

TASK = """
task: capitals
dataset_path: json
dataset_kwargs: {data_files: {test: capitals.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{country}}:"
doc_to_choice: "{{choices}}"
doc_to_target: label
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
metadata: {version: 1.0}
"""
CHOICES = ["Paris", "Rome", "Oslo"]


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with chosen_device("cpu"):
        return write_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for module in ("huggingface_hub.constants", "datasets.config"):
        if module in sys.modules:  # the variable was read when they were imported
            monkeypatch.setattr(f"{module}.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path_factory.getbasetemp() / "datasets"))
    monkeypatch.setenv("NPUPORT_LANG", "en")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "capitals.yaml").write_text(TASK, encoding="utf-8")
    rows = [{"country": country, "choices": CHOICES, "label": label} for label, country in enumerate("FIN")]
    (folder / "capitals.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "questions.jsonl").write_text(
        json.dumps({"input": "中国的首都是哪里？", "output": ["北京", "是北京"]}, ensure_ascii=False), encoding="utf-8"
    )
    return folder


def asked(model: Path, tasks: Path, *more: object) -> list[object]:
    return [
        *("model", "evaluate", model, "--tasks", "capitals", "--task-folder", tasks, "--json"),
        *("--rouge", tasks / "questions.jsonl", "--rouge-tokens", 4, *more),
    ]


@needs_lm_eval
def test_a_task_and_rouge_run_offline(
    npuport: Callable[..., int],
    model: Path,
    tasks: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = tmp_path / "results.json"
    monkeypatch.chdir(tmp_path)
    assert npuport(*asked(model, tasks.relative_to(tmp_path), "--device", "cpu", "--output", "results.json")) == 0
    said = json.loads(capsys.readouterr().out)
    jsonschema.validate(said, schema("npuport-evaluation-1"))
    scores = {(one["task"], one["metric"]): one for one in said["scores"]}
    assert set(scores) == {("capitals", "acc"), ("rouge", "rouge1"), ("rouge", "rouge2"), ("rouge", "rougeL")}
    assert scores["capitals", "acc"]["samples"] == 3
    # lm-eval's score is what the model says when it is asked without lm-eval.
    assert scores["capitals", "acc"]["value"] == pytest.approx(own_accuracy(model))
    results = read_results(kept)
    assert len(results.samples["capitals"]) == 3
    assert compare(results, results).same


def own_accuracy(folder: Path) -> float:
    with chosen_device("cpu"):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        models: Any = AutoModelForCausalLM
        tokenizers: Any = AutoTokenizer
        model, tokenizer = models.from_pretrained(folder).eval(), tokenizers.from_pretrained(folder)
    right = 0
    for label, country in enumerate("FIN"):
        start = tokenizer.encode(f"{country}:", add_special_tokens=False)
        chances = []
        for choice in CHOICES:
            rest = tokenizer.encode(f" {choice}", add_special_tokens=False)
            with torch.inference_mode():
                logits = model(torch.tensor([[*start, *rest]])).logits[0].log_softmax(-1)
            chances.append(sum(float(logits[len(start) + place - 1, token]) for place, token in enumerate(rest)))
        right += chances.index(max(chances)) == label
    return right / 3


@needs_lm_eval
def test_on_the_simulated_npu(
    simulated: Callable[..., subprocess.CompletedProcess[str]], model: Path, tasks: Path
) -> None:
    command = ["-m", "npuport", *map(str, asked(model, tasks))]
    done = simulated(command, SimOptions())
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout[done.stdout.index('{\n  "schema"') :])
    assert (said["device"], said["simulated"]) == ("npu:0", True)
    accuracy = next(one["value"] for one in said["scores"] if one["metric"] == "acc")
    assert accuracy == pytest.approx(own_accuracy(model))


@needs_lm_eval
def test_misuse_is_named(
    npuport: Callable[..., int], model: Path, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*options: object) -> str:
        assert npuport("model", "evaluate", *options, "--device", "cpu") == 2
        return capsys.readouterr().err

    assert "say what to evaluate" in said(model)
    assert "two names" in said(model, "--rouge", tasks / "questions.jsonl", "--rouge-fields", "one")
    answers = said(model, "--rouge", tasks / "questions.jsonl", "--rouge-fields", "input,answer")
    assert "questions.jsonl:1: field input must be a text, and answer" in answers and "are input, output" in answers
    assert "holds no config.json" in said(tmp_path / "none", "--tasks", "capitals", "--task-folder", tasks)
    assert "capitals.yaml:1 is no JSON object" in said(model, "--rouge", tasks / "capitals.yaml")
    (tasks / "questions.jsonl").write_text('{"input": "a", "output": []}', encoding="utf-8")
    assert "no right output" in said(model, "--rouge", tasks / "questions.jsonl")
    assert "does not exist" in said(model, "--tasks", "capitals", "--task-folder", tasks / "none")
    records = (tasks / "capitals.jsonl").read_text(encoding="utf-8")
    (tasks / "capitals.jsonl").write_text('{"country": ', encoding="utf-8")
    assert "task's files cannot be used: DatasetGenerationError: JSON" in said(
        model, "--tasks", "capitals", "--task-folder", tasks
    )
    (tasks / "capitals.jsonl").unlink()
    assert "data cannot be read: Unable to find" in said(model, "--tasks", "capitals", "--task-folder", tasks)
    (tasks / "capitals.jsonl").write_text(records, encoding="utf-8")
    (tasks / "capitals.yaml").write_text(TASK.replace("json\n", "npuport-tests/not-there\n", 1), encoding="utf-8")
    told = said(model, "--tasks", "capitals", "--task-folder", tasks)
    assert "the dataset npuport-tests/not-there is not on this machine" in told and ".load(['capitals'])" in told
    # The folder comes first: no dataset is asked for on behalf of a name mistyped.
    assert "holds no config.json" in said(tmp_path / "none", "--tasks", "capitals", "--task-folder", tasks)
    empty = write_config(tmp_path / "empty")
    (tasks / "capitals.yaml").write_text(TASK, encoding="utf-8")
    assert "holds no weights" in said(empty, "--tasks", "capitals", "--task-folder", tasks)
    for name in ("config.json", "model.safetensors"):
        (empty / name).write_bytes((model / name).read_bytes())
    assert "holds no tokenizer" in said(empty, "--tasks", "capitals", "--task-folder", tasks)


def test_ascii_has_the_tokens_of_rouge_score() -> None:
    tokenizers = pytest.importorskip("rouge_score.tokenizers")
    theirs = tokenizers.DefaultTokenizer(use_stemmer=False)
    for text in ("Don't panic: 42 towels_here, e.g.", "", "A-b C3PO"):
        assert Tokenizer().tokenize(text) == theirs.tokenize(text)


def test_each_han_character_is_a_token() -> None:
    assert Tokenizer().tokenize("北京在China，2024年") == ["北", "京", "在", "china", "2024", "年"]
    assert Tokenizer().tokenize("カナ한국어 Größe") == ["カ", "ナ", "한국어", "größe"]


@needs_lm_eval
def test_rouge_of_chinese() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    assert rouge("北京是首都", ["北京是首都"])["rougeL"] == 1
    assert RougeScorer(["rougeL"]).score("北京是首都", "北京是首都")["rougeL"].fmeasure == 0, "rouge_score's own tokens"
    # Three of four characters, and three of five: F = 2 x 3 / 9. Of two references the better one counts.
    assert rouge("北京首府", ["京首府在此", "无"])["rouge1"] == pytest.approx(2 * 3 / 9)


def test_changes_of_answers_are_judged_exactly() -> None:
    assert paired_chance([0.0] * 50) == 1
    assert paired_chance([1, -1] * 8) == 1
    # Ten answers worse and none better: two of 2^10 ways.
    assert paired_chance([-1] * 10 + [0] * 990) == pytest.approx(2 / 2**10)
    # scipy.stats.binomtest(2, 14).pvalue
    assert paired_chance([1] * 2 + [-1] * 12) == pytest.approx(0.0129394531)
    # Not 0 and 1: mean 0.1, standard error 0.0447, so z is 2.236.
    changes = [0.3, -0.1, 0.1, 0.2, 0.0]
    spread = math.sqrt(sum((one - 0.1) ** 2 for one in changes) / 4 / 5)
    assert paired_chance(changes) == pytest.approx(math.erfc(0.1 / spread / math.sqrt(2)))


def test_without_samples_the_standard_errors_decide() -> None:
    score = Score("task", "acc", "none", 0.50, 0.03)
    assert unpaired_chance(score, Score("task", "acc", "none", 0.598, 0.04)) == pytest.approx(0.05, abs=0.0005)
    assert unpaired_chance(score, Score("task", "acc", "none", 0.6, None)) is None
    assert unpaired_chance(score, Score("task", "acc", "none", 0.5, None)) == 1


def results(values: Sequence[int], *, samples: bool = True, **changed: Any) -> Results:
    mean = sum(values) / len(values)
    error = math.sqrt(mean * (1 - mean) / (len(values) - 1))
    document: Mapping[str, Any] = {
        "results": {"quiz": {"alias": "quiz", "acc,none": mean, "acc_stderr,none": error}},
        "versions": {"quiz": 1},
        "n-shot": {"quiz": 5},
        "n-samples": {"quiz": {"original": len(values), "effective": len(values)}},
        **changed,
    }
    kept = [{"doc_id": place, "prompt_hash": "p", "filter": "none", "acc": value} for place, value in enumerate(values)]
    return Results("file", document, {"quiz": kept} if samples else {})


def test_a_small_loss_on_the_same_questions_is_found_with_samples_alone() -> None:
    # 20 of 1000 answers are lost and none won: far more than chance, and less than the standard error of 500 of 1000.
    before, after = [1] * 500 + [0] * 500, [1] * 480 + [0] * 520
    (one,) = compare(results(before), results(after)).differences
    assert (one.verdict, one.paired, one.changed, one.samples) == ("differs", True, 20, 1000)
    (other,) = compare(results(before, samples=False), results(after, samples=False)).differences
    assert (other.verdict, other.paired) == ("same", False)


def test_scores_of_other_questions_are_not_compared() -> None:
    first, second = results([1, 0, 1]), results([1, 0, 1], **{"n-shot": {"quiz": 0}})
    (one,) = compare(first, second).differences
    assert one.verdict == "not comparable" and one.settings == ("n-shot: 5 / 0",)
    assert not compare(first, second).same
    other = results([1, 0, 1])
    asked_otherwise = {"quiz": [{**one, "prompt_hash": "q"} for one in other.samples["quiz"]]}
    (one,) = compare(first, Results("file", other.document, asked_otherwise)).differences
    assert one.verdict == "not comparable" and one.settings == ("prompts",)


def test_files_of_lm_eval_are_compared(
    npuport: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def written(name: str, values: Sequence[int], *, samples: bool) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        found = results(values)
        place = folder / "results_2026-11-30T10-00-00.000001.json"
        place.write_text(json.dumps(found.document), encoding="utf-8")
        if samples:
            lines = "\n".join(map(json.dumps, found.samples["quiz"]))
            (folder / "samples_quiz_2026-11-30T10-00-00.000001.jsonl").write_text(lines, encoding="utf-8")
        return place

    gpu = written("gpu", [1] * 500 + [0] * 500, samples=True)
    npu = written("npu", [1] * 480 + [0] * 520, samples=True)
    assert npuport("model", "compare", gpu, npu, "--json") == 1
    said = json.loads(capsys.readouterr().out)
    jsonschema.validate(said, schema("npuport-evaluation-comparison-1"))
    assert said["same"] is False and said["scores"][0]["paired"] is True
    assert npuport("model", "compare", gpu, written("bare", [1] * 480 + [0] * 520, samples=False)) == 0
    assert "no samples: by the standard errors" in capsys.readouterr().out
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    assert npuport("model", "compare", gpu, tmp_path / "other.json") == 2
    assert "holds no results of lm-eval" in capsys.readouterr().err
