"""A fix that rests on a claim is applied when the claim is proved, and only then."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from npuport.conversion.record import Record
from npuport.conversion.rounds import Conversion, convert_files
from npuport.findings import Applicability, Claim, Outcome, Verdict
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile

NORM = """import torch


def norm(self, x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
"""
PROVED = Verdict(Outcome.PROVED, difference=(("float32", 1e-7),), original=(("float32", 2e-7),), runs=3)
VERDICTS = {
    "proved equal in 3 runs": PROVED,
    "withheld, for it is not equal: the result differs": Verdict(Outcome.WITHHELD, "the result differs"),
    "withheld, for the proof could not run: no torch": Verdict(Outcome.UNTRIED, "no torch"),
}
asked: list[Claim] = []


def converted(verdict: Verdict | None, unsafe: bool = True, text: str = NORM) -> Conversion:
    asked.clear()

    def prove(claims: Sequence[Claim]) -> list[Verdict]:
        asked.extend(claims)
        assert verdict is not None
        return [verdict] * len(claims)

    source = SourceFile("model.py", FileKind.PYTHON, text)
    return convert_files([source], Settings(), unsafe, jobs=1, prove=None if verdict is None else prove)


def record(done: Conversion) -> tuple[str, dict[str, object]]:
    made = Record("project", done, (), Settings())
    return made.markdown().decode(), json.loads(made.json())


@pytest.mark.parametrize("words", VERDICTS)
def test_the_verdict_decides_and_is_told(words: str) -> None:
    done = converted(VERDICTS[words])
    text, document = record(done)
    assert ("npu_rms_norm" in done.files[0].text) == words.startswith("proved")
    assert words in text
    assert '"proof": {"outcome"' in json.dumps(document)
    assert len(asked) == 1


def test_the_claim_is_free_of_the_names_of_the_users_code() -> None:
    converted(PROVED)
    (claim,) = asked
    assert [one.name for one in claim.inputs] == ["x", "weight", "eps"]
    assert "self" not in claim.before + claim.after
    assert claim.after == "return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]"


def test_what_is_withheld_stays_as_a_finding_whose_fix_is_shown_only() -> None:
    done = converted(Verdict(Outcome.WITHHELD, "the result differs"))
    (left,) = [one for one in done.left if one.code == "NP643"]
    assert left.fix is not None
    assert left.fix.applicability is Applicability.MANUAL
    assert done.files[0].text == NORM


def test_without_a_proof_the_record_says_so() -> None:
    done = converted(None)
    assert "npu_rms_norm" in done.files[0].text
    assert "applied without a proof" in record(done)[0]


def test_nothing_is_fused_unless_unsafe_fixes_are_wanted() -> None:
    done = converted(PROVED, unsafe=False)
    assert done.files[0].text == NORM
    assert asked == []


def test_each_claim_is_proved_once_however_often_it_is_met() -> None:
    twice = NORM + NORM.replace("import torch", "").replace("def norm", "def other")
    done = converted(PROVED, text=twice)
    assert done.files[0].text.count("npu_rms_norm") == 2
    assert len(asked) == 1


def test_code_that_cannot_be_cut_out_says_why() -> None:
    text = NORM.replace("    return", "    x = x.float()\n    self.seen = x\n    return")
    done = converted(PROVED, text=text)
    assert done.files[0].text == text
    assert "left as it is, for x is not at hand where the last step is" in record(done)[0]
