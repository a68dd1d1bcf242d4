"""Calls of two runs are matched also where names, wrappers and operators differ, and in long steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuport.precision.operators.alignment import align
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.matching import matches
from npuport.precision.operators.renames import Rename, renamed, summary

EAGER = ("native_layer_norm", "addmm", "bmm", "div", "masked_fill", "_softmax", "bmm", "clone", "addmm", "add")
FUSED = ("native_layer_norm", "addmm", "npu_fusion_attention", "addmm", "add")


def step_of_calls(entries: Iterable[tuple[str, str]]) -> Step:
    ref = TensorRef(0, "float32", (2, 3), (3, 1), 0)
    calls = [
        Call(at, f"aten.{operator}.default", module, "forward", (ref,), {}, ref, "")
        for at, (module, operator) in enumerate(entries)
    ]
    return Step(calls, {})


def layers_of(parts: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Four layers of modules, with the operators of each."""
    return [(f"h.{at}.{part}", name) for at in range(4) for part, names in parts.items() for name in names]


@given(st.lists(st.sampled_from("abcd"), max_size=40), st.lists(st.sampled_from("abcd"), max_size=40))
def test_matches_are_equal_and_ascend(one: Sequence[str], other: Sequence[str]) -> None:
    found = matches(one, other)
    assert all(one[a] == other[b] for a, b in found)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(found))


@given(st.lists(st.integers(0, 3), max_size=300), st.integers(0, 299))
def test_one_more_entry_is_the_only_one_without_a_match(one: list[int], at: int) -> None:
    assert len(matches(one, [*one[:at], 9, *one[at:]])) == len(one)


def test_long_steps_with_other_operators_in_each_layer_are_matched() -> None:
    layers = range(3000)
    found = matches([(at, name) for at in layers for name in EAGER], [(at, name) for at in layers for name in FUSED])
    assert len(found) == 4 * len(layers)
    # Nothing tells one layer from another, and nothing is as often on both sides.
    one, other = [*"abc" * 9000], [*"bxa" * 8000]
    assert len(matches(one, other)) > 14_000


def test_a_renamed_module_is_known_by_what_it_does() -> None:
    reference = [(f"layers.{at}.attn", name) for at in range(4) for name in EAGER] + [("head", "addmm")]
    candidate = [(f"model.layers.{at}.self_attn", name) for at in range(4) for name in EAGER] + [("head", "addmm")]
    alignment = align(step_of_calls(reference), step_of_calls(candidate))
    assert alignment.differences == ()
    assert alignment.renames["model.layers.2.self_attn"] == "layers.2.attn"


def test_a_module_that_is_renamed_and_fused_is_known() -> None:
    mlp = ("mm", "gelu", "mm")
    reference = layers_of({"attn": EAGER, "mlp": mlp})
    candidate = layers_of({"self_attn": FUSED, "mlp": mlp})
    alignment = align(step_of_calls(reference), step_of_calls(candidate))
    assert alignment.renames == {f"h.{at}.self_attn": f"h.{at}.attn" for at in range(4)}
    assert summary(alignment.renames) == [Rename("attn", "self_attn", 4)]
    assert len(alignment.differences) == 4


def test_a_module_that_does_something_else_is_not_renamed() -> None:
    alignment = align(step_of_calls([("a", "mm"), ("b", "gelu")]), step_of_calls([("a", "mm"), ("c", "sigmoid")]))
    assert alignment.renames == {} and len(alignment.differences) == 1


def test_the_user_s_renames_come_first() -> None:
    assert renamed("model.layers.0.self_attn.q", {"self_attn": "attn", "model": ""}) == "layers.0.attn.q"
    assert renamed("my_self_attn.q", {"self_attn": "attn"}) == "my_self_attn.q"
    assert renamed("layers.0", {"": "model"}) == "model.layers.0"
    one, other = step_of_calls([("old", "mm"), ("rest", "mm")]), step_of_calls([("new", "mm"), ("rest", "mm")])
    assert align(one, other, {"new": "old"}).pairs == tuple(zip(one.calls, other.calls, strict=True))


def summing(order: Sequence[str]) -> Step:
    """A backward pass in which a cell is used three times: the gradient of each parameter is added up in that order."""
    calls: list[Call] = []
    sums: dict[str, TensorRef] = {}

    def called(operator: str, *inputs: TensorRef) -> TensorRef:
        result = TensorRef(len(calls), "float32", (4, 4), (4, 1), 0)
        calls.append(Call(len(calls), f"aten.{operator}.Tensor", "cell", "backward", inputs, {}, result, ""))
        return result

    for _ in range(3):
        for name in order:
            part = called("mm")
            sums[name] = called("add", sums[name], part) if name in sums else part
    return Step(calls, {}, names={ref.storage: f"gradient of cell.{name}" for name, ref in sums.items()})


@pytest.mark.parametrize("order", list(permutations(("weight_ih", "weight_hh", "bias"))))
def test_sums_of_gradients_are_matched_by_parameter(order: Sequence[str]) -> None:
    reference, candidate = summing(("weight_ih", "weight_hh", "bias")), summing(order)
    named = [
        (reference.names.get(one.result.storage), candidate.names.get(other.result.storage))
        for one, other in align(reference, candidate).pairs
    ]
    assert all(one == other for one, other in named)
    assert any(one is not None for one, _ in named)
