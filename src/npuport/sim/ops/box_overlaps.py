"""Overlaps of axis-parallel boxes, and their gradients.

Code that calls the device operators: op_plugin/ops/aclops/{Iou,Giou,Diou,Ciou}KernelNpu.cpp of Ascend/op-plugin. Pages:
docs/zh/custom_APIs/torch_npu there. Formulas: the golden functions of its test/test_base_ops/test_{iou,npu_giou,
npu_diou,ciou}.py, and ciou_grad of CANN for the weight that the gradient of CIoU takes as a constant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_IOF = 1
_SIDE_EPSILON = 0.01
_AREA_EPSILON = 1e-16
_EPSILON = 1e-9


class Corners(NamedTuple):
    """Left, top, right and bottom of boxes, each of the same shape."""

    x1: Tensor
    y1: Tensor
    x2: Tensor
    y2: Tensor

    @property
    def width(self) -> Tensor:
        return self.x2 - self.x1

    @property
    def height(self) -> Tensor:
        return self.y2 - self.y1


def corners(boxes: Tensor, centred: bool) -> Corners:
    """Of boxes [4, n]: (x, y, w, h) with the centre if `centred`, otherwise (x1, y1, x2, y2)."""
    first, second, third, fourth = boxes.unbind(0)
    if not centred:
        return Corners(first, second, third, fourth)
    return Corners(first - third / 2, second - fourth / 2, first + third / 2, second + fourth / 2)


def intersection(a: Corners, b: Corners) -> Tensor:
    """Common area, with broadcasting."""
    width = torch.minimum(a.x2, b.x2) - torch.maximum(a.x1, b.x1)
    height = torch.minimum(a.y2, b.y2) - torch.maximum(a.y1, b.y1)
    return width.clamp(min=0) * height.clamp(min=0)


@kernel("npu::npu_iou", "npu::npu_ptiou")
def npu_iou(bboxes: Tensor, gtboxes: Tensor, mode: int = 0) -> Tensor:
    """[m, n]: overlap of every ground truth box [m, 4] with every box [n, 4], over the union (mode 0) or over the
    ground truth box (mode 1), in half precision; 0.01 is added to the sides whose product is an area.

    The results recorded in op-plugin's test_iou.py for Ascend910A and 910B have no 0.01 in the common area; those for
    Ascend950 have, and are not modelled.
    """
    box = corners(bboxes.half().float().t(), centred=False)
    truth = corners(gtboxes.half().float().t().unsqueeze(-1), centred=False)
    common = intersection(truth, box)
    truth_area, box_area = ((c.width + _SIDE_EPSILON) * (c.height + _SIDE_EPSILON) for c in (truth, box))
    whole = truth_area if mode == _IOF else truth_area + box_area - common
    return (common / whole).half().to(bboxes.dtype)


def _pairs(boxes: Tensor, truth: Tensor, trans: bool, is_cross: bool) -> tuple[Corners, Corners]:
    """Corners that broadcast to the result: [1, n] one to one, [m, n] for all pairs."""
    b = corners(boxes.unsqueeze(1), trans)
    return b, corners(truth.unsqueeze(2 if is_cross else 1), trans)


def _result(overlap: Tensor, boxes: Tensor, truth: Tensor) -> Tensor:
    return overlap.half() if torch.float16 in (boxes.dtype, truth.dtype) else overlap


def _require_documented_gradient(operator: str, trans: bool, is_cross: bool, mode: int) -> None:
    if not trans or is_cross or mode != 0:
        raise NoReferenceError(operator, "documented for trans=True, is_cross=False, mode=0 only")


def _giou(boxes: Tensor, truth: Tensor) -> Tensor:
    """[n, 1]: iou - (enclosing area - union) / enclosing area."""
    a, b = _pairs(boxes, truth, trans=True, is_cross=False)
    common = intersection(a, b)
    union = a.width * a.height + b.width * b.height - common + _AREA_EPSILON
    width = torch.maximum(a.x2, b.x2) - torch.minimum(a.x1, b.x1)
    height = torch.maximum(a.y2, b.y2) - torch.minimum(a.y1, b.y1)
    enclosing = width.abs() * height.abs()
    return (common / union - (enclosing - union) / enclosing).t()


def _require_giou_case(trans: bool, is_cross: bool, mode: int) -> None:
    if not trans or is_cross or mode != 0:
        raise RuntimeError(
            "giou backward only support trans==True, is_cross==False, mode==0('iou') current version "
            "if you need to back propagation, please ensure your parameter is correct!"
        )


@kernel("npu::npu_giou")
def npu_giou(self: Tensor, gtboxes: Tensor, trans: bool = False, is_cross: bool = False, mode: int = 0) -> Tensor:
    """Generalized IoU [n, 1] of boxes [4, n] (x, y, w, h); torch_npu refuses all other settings."""
    _require_giou_case(trans, is_cross, mode)
    return _result(_giou(wide(self), wide(gtboxes)), self, gtboxes)


@kernel("npu::npu_giou_backward")
def npu_giou_backward(
    grad: Tensor, bboxes: Tensor, gtboxes: Tensor, trans: bool = False, is_cross: bool = False, mode: int = 0
) -> tuple[Tensor, ...]:
    _require_giou_case(trans, is_cross, mode)
    found = vector_jacobian(_giou, (wide(bboxes), wide(gtboxes)), (wide(grad).reshape(-1, 1),))
    return tuple(_result(f, bboxes, gtboxes) for f in found if f is not None)


def _distance_iou(a: Corners, b: Corners) -> tuple[Tensor, Tensor]:
    """(iou, squared distance of the centres over the squared diagonal of the enclosing box)."""
    common = intersection(a, b)
    union = a.width * (a.height + _EPSILON) + b.width * (b.height + _EPSILON) - common + _EPSILON
    width = torch.maximum(a.x2, b.x2) - torch.minimum(a.x1, b.x1)
    height = torch.maximum(a.y2, b.y2) - torch.minimum(a.y1, b.y1)
    diagonal = width.square() + height.square() + _EPSILON
    distance = ((b.x1 + b.x2 - a.x1 - a.x2).square() + (b.y1 + b.y2 - a.y1 - a.y2).square()) / 4
    return common / union, distance / diagonal


def _diou(boxes: Tensor, truth: Tensor, trans: bool, is_cross: bool) -> Tensor:
    iou, distance = _distance_iou(*_pairs(boxes, truth, trans, is_cross))
    return iou - distance


def _require_union(operator: str, mode: int) -> None:
    if mode == _IOF:
        raise NoReferenceError(operator, "mode=1: CANN's documents disagree on the box whose area divides")


@kernel("npu::npu_diou")
def npu_diou(self: Tensor, gtboxes: Tensor, trans: bool = False, is_cross: bool = False, mode: int = 0) -> Tensor:
    """Distance IoU of boxes [4, n] and [4, m]: [1, n] one to one, [m, n] if `is_cross`."""
    _require_union("npu::npu_diou", mode)
    return _result(_diou(wide(self), wide(gtboxes), trans, is_cross), self, gtboxes)


@kernel("npu::npu_diou_backward")
def npu_diou_backward(
    grad: Tensor, bboxes: Tensor, gtboxes: Tensor, trans: bool = False, is_cross: bool = False, mode: int = 0
) -> tuple[Tensor, ...]:
    _require_documented_gradient("npu::npu_diou_backward", trans, is_cross, mode)

    def diou(boxes: Tensor, truth: Tensor) -> Tensor:
        return _diou(boxes, truth, trans, is_cross)

    found = vector_jacobian(diou, (wide(bboxes), wide(gtboxes)), (wide(grad).reshape(1, -1),))
    return tuple(_result(f, bboxes, gtboxes) for f in found if f is not None)


def _complete_iou(boxes: Tensor, truth: Tensor, trans: bool, is_cross: bool) -> tuple[Tensor, Tensor]:
    """(ciou, difference of the two arcus tangents of width over height). The gradient takes alpha as a constant."""
    a, b = _pairs(boxes, truth, trans, is_cross)
    iou, distance = _distance_iou(a, b)
    difference = torch.atan(b.width / (b.height + _EPSILON)) - torch.atan(a.width / (a.height + _EPSILON))
    shape = 4 / math.pi**2 * difference.square()
    alpha = (shape / (1 + _EPSILON - iou + shape)).detach()
    return iou - distance - alpha * shape, difference


@kernel("npu::_npu_ciou")
def npu_ciou_pair(
    self: Tensor,
    gtboxes: Tensor,
    trans: bool = False,
    is_cross: bool = True,
    mode: int = 0,
    atan_sub_flag: bool = False,
) -> tuple[Tensor, Tensor]:
    """(Complete IoU, atan difference) of boxes [4, n] and [4, m]: [1, n] one to one, [m, n] if `is_cross`."""
    if self.dim() != 2 or gtboxes.dim() != 2:
        raise RuntimeError("ciou expected input in 2D")
    _require_union("npu::_npu_ciou", mode)
    overlap, difference = _complete_iou(wide(self), wide(gtboxes), trans, is_cross)
    return _result(overlap, self, gtboxes), difference


@kernel("npu::npu_ciou_backward")
def npu_ciou_backward(
    grad: Tensor,
    bboxes: Tensor,
    gtboxes: Tensor,
    atan_sub: Tensor | None,
    trans: bool = False,
    is_cross: bool = True,
    mode: int = 0,
) -> tuple[Tensor, ...]:
    """The saved `atan_sub` is computed again, so a forward pass without `atan_sub_flag` has the same gradient."""
    _require_documented_gradient("npu::npu_ciou_backward", trans, is_cross, mode)

    def ciou(boxes: Tensor, truth: Tensor) -> Tensor:
        return _complete_iou(boxes, truth, trans, is_cross)[0]

    found = vector_jacobian(ciou, (wide(bboxes), wide(gtboxes)), (wide(grad).reshape(1, -1),))
    return tuple(_result(f, bboxes, gtboxes) for f in found if f is not None)
