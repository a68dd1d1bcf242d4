"""Both sides of a claim are run, and what they give decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuport.findings import Claim, Input, Outcome, Verdict
from npuport.proof import VerdictCache, prove

INPUTS = (Input("x", "tensor(*lead, D, scale=scale)"), Input("weight", "tensor(D)"), Input("eps", "eps"))
CASES = ("lead=(3,), D=8, eps=0.1, scale=1.0", "lead=(1, 5), D=33, eps=1e-5, scale=1e-3")
AFTER = "return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]"
IN_FLOAT32 = """v = x.to(torch.float32)
v = v * torch.rsqrt({mean} + eps)
return {weight} * v.to(x.dtype)"""
MEAN = "v.pow(2).mean(-1, keepdim=True)"
BEFORE = {
    "llama": IN_FLOAT32.format(mean=MEAN, weight="weight"),
    "in the dtype of the input": "return weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)",
    "one more": IN_FLOAT32.format(mean=MEAN, weight="(1 + weight)"),
    "mean without square": IN_FLOAT32.format(mean="v.abs().mean(-1, keepdim=True)", weight="weight"),
    "centred": IN_FLOAT32.format(mean="v.var(-1, keepdim=True, unbiased=False)", weight="weight"),
    "eps outside": f"return weight * x / ({MEAN.replace('v', 'x')}.sqrt() + eps)",
    "without a gradient": IN_FLOAT32.format(mean=MEAN, weight="weight.detach()"),
    "wider": f"v = x.float()\nreturn weight * v * torch.rsqrt({MEAN} + eps)",
    "ends the process": "__import__('os')._exit(7)",
    "no Python": "return (",
    "after those": IN_FLOAT32.format(mean=MEAN, weight="weight"),
}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    claims = {name: Claim(INPUTS, before, AFTER, CASES) for name, before in BEFORE.items()}
    claims["refuses"] = Claim(INPUTS, BEFORE["llama"], "return torch_npu.npu_rms_norm(x, weight[:, None])[0]", CASES)
    deep = "lead=(1,) * 8, D=2, eps=0.1, scale=1.0"
    refuses = "assert x.dim() < 9 or x.new_ones(2).view(3)"
    claims["nine dimensions"] = Claim(INPUTS, BEFORE["llama"], f"{refuses}\n{AFTER}", (deep, *CASES))
    return dict(zip(claims, prove(list(claims.values())), strict=True))


def test_what_is_equal_is_proved_with_the_error_of_each_dtype(verdicts: dict[str, Verdict]) -> None:
    for name in ("llama", "in the dtype of the input", "after those"):
        verdict = verdicts[name]
        assert verdict.outcome is Outcome.PROVED, verdict
        assert verdict.runs == 3 * len(CASES)
        errors = dict(verdict.difference)
        assert errors.keys() == {"float32", "float16", "bfloat16"}
        assert 0 < errors["float32"] < 1e-6 < errors["float16"] < 2e-3 < errors["bfloat16"] < 1e-2


def test_the_error_of_the_original_is_told_beside_it(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["in the dtype of the input"]
    assert dict(verdict.original)["float16"] > dict(verdict.difference)["float16"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("one more", "the result differs"),
        ("mean without square", "the result differs"),
        ("centred", "the result differs"),
        ("eps outside", "the result differs"),
        ("without a gradient", "the gradient of weight differs"),
        ("wider", "the result is float16 and not float32"),
    ],
)
def test_what_only_looks_alike_is_withheld_with_the_reason(verdicts: dict[str, Verdict], name: str, why: str) -> None:
    verdict = verdicts[name]
    assert verdict.outcome is Outcome.WITHHELD
    assert verdict.reason.startswith(why)


def test_what_holds_for_equal_dtypes_only_is_noted(verdicts: dict[str, Verdict]) -> None:
    assert verdicts["llama"].notes == (
        "with a float16 input beside float32 ones: the result is float16 and not float32",
    )


def test_code_that_ends_the_process_costs_its_own_claim_only(verdicts: dict[str, Verdict]) -> None:
    assert verdicts["ends the process"].outcome is Outcome.UNTRIED
    assert "ended with 7" in verdicts["ends the process"].reason
    assert verdicts["no Python"].outcome is Outcome.UNTRIED
    assert "SyntaxError" in verdicts["no Python"].reason


def test_what_an_operator_refuses_is_a_limit_that_is_told(verdicts: dict[str, Verdict]) -> None:
    assert verdicts["refuses"].outcome is Outcome.UNTRIED
    assert verdicts["refuses"].reason.startswith("not with lead=(3,), D=8, eps=0.1, scale=1.0 in float32: The size of")
    assert verdicts["nine dimensions"].outcome is Outcome.PROVED
    assert "not with lead=(1,) * 8, D=2" in verdicts["nine dimensions"].notes[0]


def test_a_proof_has_an_end() -> None:
    (verdict,) = prove([Claim(INPUTS, BEFORE["llama"], AFTER, CASES)], seconds=0.2)
    assert verdict.outcome is Outcome.UNTRIED
    assert "took longer than 0.2 s" in verdict.reason


def test_no_claims_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a process was started"))
    assert prove([]) == []


def test_a_verdict_is_kept_until_the_claim_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Claim] = []

    def run(claims: list[Claim], *_: object) -> list[Verdict]:
        asked.extend(claims)
        return [Verdict(Outcome.PROVED, difference=(("float32", 1e-7),), runs=3, notes=("a note",)) for _ in claims]

    monkeypatch.setattr("npuport.proof.proving._run_all", run)
    cache = VerdictCache(tmp_path / "proofs")
    claim = Claim(INPUTS, BEFORE["llama"], AFTER, CASES)
    first = prove([claim], cache=cache)
    assert prove([claim], cache=VerdictCache(tmp_path / "proofs")) == first
    assert asked == [claim]
    other = Claim(INPUTS, BEFORE["llama"], AFTER, CASES[:1])
    prove([claim, other], cache=cache)
    prove([claim], "Ascend910A", cache=cache)
    assert asked == [claim, other, claim]
    for entry in (tmp_path / "proofs").iterdir():
        entry.write_text("{}")
    prove([claim], cache=cache)
    assert len(asked) == 4


def test_what_could_not_run_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    untried = Verdict(Outcome.UNTRIED, "no torch")
    monkeypatch.setattr("npuport.proof.proving._run_all", lambda *_: tries.append(1) or [untried])
    for _ in range(2):
        assert prove([Claim(INPUTS, "", "", CASES)], cache=VerdictCache(tmp_path)) == [untried]
    assert len(tries) == 2
