"""Calls whose results do not follow from their inputs: memory that nothing was written to, and random numbers. By the
names of PyTorch's operators (aten.rand_like.default) and of msprobe's APIs and modules (Torch.rand_like.0)."""

from __future__ import annotations

from npuport.precision.operators.calls import Call

_EMPTY = ("empty", "new_empty")
_RANDOM = {
    "bernoulli", "binomial", "cauchy", "exponential", "geometric", "gumbel_softmax", "log_normal", "multinomial",
    "normal", "normal_functional", "poisson", "rand", "randint", "randn", "random", "randperm", "uniform",
    "_npu_dropout_gen_mask", "_sample_dirichlet", "_standard_gamma", "npu_dropout_gen_mask",
}  # fmt: skip
_DROPS = {
    "alpha_dropout", "alphadropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "feature_dropout", "featurealphadropout", "native_dropout", "rrelu", "rrelu_with_noise",
    "_fused_dropout", "npu_dropout", "_npu_dropout",
    "dropout_with_byte_mask", "_dropout_with_byte_mask",
}  # fmt: skip


def holds_anything(call: Call) -> bool:
    """Whether a result is memory that nothing was written to yet."""
    return _name(call).startswith(_EMPTY)


def is_random(call: Call) -> bool:
    """Whether a call draws random numbers."""
    return _name(call) in _RANDOM or drops(call)


def drops(call: Call) -> bool:
    """Whether a call changes an input by random numbers where it is told to: a dropout. msprobe gives the backward call
    of one the same name."""
    return _name(call) in _DROPS and not (call.phase == "backward" and call.operator[0].isupper())


def _name(call: Call) -> str:
    """Such as "rand" of aten.rand_like.default, and "dropout" of Module.Dropout.0."""
    return call.operator.partition(".")[2].partition(".")[0].lower().rstrip("_").removesuffix("_like")
