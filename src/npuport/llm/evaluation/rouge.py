"""ROUGE of answers against references (Lin 2004), for texts with and without spaces between words.

rouge_score's own tokens are runs of a-z and 0-9: a Chinese text has none, and every score of it is 0. Here each Han
character and each kana is a token, as evaluations of Chinese do, and every other run of letters or digits is one. ASCII
text has the same tokens in both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

KINDS = ("rouge1", "rouge2", "rougeL")

# Han with its extensions and compatibility forms; hiragana and katakana.
_ALONE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3040-\u30ff"
_TOKEN = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")


class Tokenizer:
    """What rouge_score takes for its own tokenizer."""

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text, in lower case."""
        return _TOKEN.findall(text.lower())


def rouge(answer: str, references: Sequence[str]) -> dict[str, float]:
    """The F-measure of each kind, 0 to 1: the best over the references."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(KINDS), tokenizer=Tokenizer())
    scores = [scorer.score(reference, answer) for reference in references]
    return {kind: max(float(one[kind].fmeasure) for one in scores) for kind in KINDS}


def task(path: str, given: str, wanted: str, answer_tokens: int) -> dict[str, Any]:
    """lm-eval's description of a task: answer field ``given`` of each line of a JSONL file, as field ``wanted`` does.

    ``wanted`` is a text, or a list of texts that are equally right.
    """

    def process_results(record: Mapping[str, Any], answers: Sequence[str]) -> dict[str, float]:
        right = record[wanted]
        return rouge(answers[0], [right] if isinstance(right, str) else right)

    return {
        "task": "rouge",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": path}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": f"{{{{{given}}}}}",
        "doc_to_target": f"{{{{{wanted}}}}}",
        "process_results": process_results,
        "generation_kwargs": {"until": [], "do_sample": False, "max_gen_toks": answer_tokens},
        "metric_list": [{"metric": kind, "aggregation": "mean", "higher_is_better": True} for kind in KINDS],
        "metadata": {"version": 1.0},
    }
