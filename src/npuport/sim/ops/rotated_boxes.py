"""Boxes with an angle in degrees: overlaps, suppression, and coding for regression.

Code that calls the device operators: op_plugin/ops/aclops/{RotatedIou,RotatedOverlaps,RotatedBox*,NmsRotated}KernelNpu
.cpp of Ascend/op-plugin, whose tests record results of the device. Geometry and coding: the golden functions of CANN's
ops-cv for RotatedOverlaps, RotatedBoxEncode and RotatedBoxDecode, and of op-plugin's test_nms_rotated.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_SMALLEST_AREA = 1e-14


def _fields(boxes: Tensor, corners: bool) -> Tensor:
    """Boxes [..., 5] as (centre x, centre y, width, height, angle in degrees) in float64; `corners` says that they come
    as (x1, y1, x2, y2, angle).
    """
    boxes = boxes.double()
    if not corners:
        return boxes
    first, last, angle = boxes[..., :2], boxes[..., 2:4], boxes[..., 4:]
    return torch.cat([(first + last) / 2, last - first, angle], dim=-1)


def _vertices(boxes: Tensor) -> Tensor:
    """[..., 4, 2]: the corners of boxes [..., 5], in the order of growing angle around the centre."""
    centre, size, angle = boxes[..., :2], boxes[..., 2:4], torch.deg2rad(boxes[..., 4])
    signs = torch.tensor([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]], dtype=boxes.dtype)
    offset = signs * size.unsqueeze(-2)
    cosine, sine = angle.cos()[..., None], angle.sin()[..., None]
    x = offset[..., 0] * cosine - offset[..., 1] * sine
    y = offset[..., 0] * sine + offset[..., 1] * cosine
    return torch.stack([x, y], dim=-1) + centre.unsqueeze(-2)


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _inside(points: Tensor, polygon: Tensor) -> Tensor:
    """Which points [..., p, 2] lie in or on convex polygons [..., 4, 2] with counter-clockwise corners."""
    edges = polygon.roll(-1, dims=-2) - polygon
    to_points = points.unsqueeze(-2) - polygon.unsqueeze(-3)
    return (_cross(edges.unsqueeze(-3), to_points) >= 0).all(dim=-1)


def _crossings(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Where the edges of polygons a and b [..., 4, 2] cross: points [..., 16, 2], and which of them exist."""
    edge_a = (a.roll(-1, dims=-2) - a).unsqueeze(-2)
    edge_b = (b.roll(-1, dims=-2) - b).unsqueeze(-3)
    between = b.unsqueeze(-3) - a.unsqueeze(-2)
    determinant = _cross(edge_a, edge_b)
    parallel = determinant == 0
    divisor = torch.where(parallel, torch.ones_like(determinant), determinant)
    along_a, along_b = _cross(between, edge_b) / divisor, _cross(between, edge_a) / divisor
    exists = ~parallel & (along_a >= 0) & (along_a <= 1) & (along_b >= 0) & (along_b <= 1)
    points = a.unsqueeze(-2) + along_a.unsqueeze(-1) * edge_a
    return points.flatten(-3, -2), exists.flatten(-2)


def intersection_area(first: Tensor, second: Tensor) -> Tensor:
    """Common area of rotated boxes [..., 5] (centre, size, degrees), with broadcasting.

    The common part is the convex hull of the corners inside the other box and the crossings of edges; sorted by angle
    around their mean, its area is that of a polygon.
    """
    first, second = torch.broadcast_tensors(first, second)
    a, b = _vertices(first), _vertices(second)
    crossings, exist = _crossings(a, b)
    points = torch.cat([a, b, crossings], dim=-2)
    valid = torch.cat([_inside(a, b), _inside(b, a), exist], dim=-1)
    count = valid.sum(dim=-1, keepdim=True)
    middle = (points * valid.unsqueeze(-1)).sum(dim=-2) / count.clamp(min=1)
    spokes = (points - middle.unsqueeze(-2)) * valid.unsqueeze(-1)
    angle = torch.atan2(spokes[..., 1], spokes[..., 0]).masked_fill(~valid, float("inf"))
    order = angle.argsort(dim=-1)
    spokes = spokes.gather(-2, order.unsqueeze(-1).expand(spokes.shape))
    known = valid.gather(-1, order).unsqueeze(-1)
    spokes = torch.where(known, spokes, spokes[..., :1, :])
    area = _cross(spokes, spokes.roll(-1, dims=-2)).sum(dim=-1).abs() / 2
    has_area = (first[..., 2:4] > 0).all(dim=-1) & (second[..., 2:4] > 0).all(dim=-1)
    return torch.where(has_area & (count.squeeze(-1) > 2), area, 0.0)


def _require_3d(boxes: Tensor, query_boxes: Tensor) -> None:
    if boxes.dim() != 3 or query_boxes.dim() != 3:
        raise RuntimeError("boxes' dim should be equal to query_boxes' ndimension() and equal to 3!")


def _all_pairs(boxes: Tensor, query_boxes: Tensor, trans: bool) -> tuple[Tensor, Tensor]:
    return _fields(boxes, trans).unsqueeze(2), _fields(query_boxes, trans).unsqueeze(1)


@kernel("npu::npu_rotated_overlaps")
def npu_rotated_overlaps(self: Tensor, query_boxes: Tensor, trans: bool = False) -> Tensor:
    """[B, N, K]: common areas of boxes [B, N, 5] and [B, K, 5]: (x, y, w, h, degrees), or (x1, y1, x2, y2, degrees) if
    `trans`. (The page states [B, 5, N]; torch_npu permutes that form out of this one.)
    """
    _require_3d(self, query_boxes)
    return intersection_area(*_all_pairs(self, query_boxes, trans)).to(self.dtype)


@kernel("npu::npu_rotated_iou")
def npu_rotated_iou(
    self: Tensor,
    query_boxes: Tensor,
    trans: bool = False,
    mode: int = 0,
    is_cross: bool = True,
    v_threshold: float = 0.0,
    e_threshold: float = 0.0,
) -> Tensor:
    """[B, N, K]: common area over union of boxes [B, N, 5] and [B, K, 5], as in npu_rotated_overlaps."""
    _require_3d(self, query_boxes)
    if mode != 0 or not is_cross or v_threshold or e_threshold:
        raise NoReferenceError("npu::npu_rotated_iou", "mode=1, is_cross=False or thresholds, not documented exactly")
    return _iou(*_all_pairs(self, query_boxes, trans)).to(self.dtype)


def _iou(first: Tensor, second: Tensor) -> Tensor:
    common = intersection_area(first, second)
    areas = first[..., 2] * first[..., 3], second[..., 2] * second[..., 3]
    real = (areas[0] >= _SMALLEST_AREA) & (areas[1] >= _SMALLEST_AREA)
    return torch.where(real, common / (areas[0] + areas[1] - common), 0.0)


@kernel("npu::npu_nms_rotated")
def npu_nms_rotated(
    self: Tensor,
    scores: Tensor,
    iou_threshold: float,
    scores_threshold: float = 0.0,
    max_output_size: int = -1,
    mode: int = 0,
) -> tuple[Tensor, Tensor]:
    """(int32 indices of the kept boxes by falling score, their number [1]); a box goes when its IoU with a kept one is
    above `iou_threshold` (torch_npu-npu_nms_rotated.md). Scores have to exceed `scores_threshold`.

    `self` [n, 5] is (x, y, w, h, degrees), or in mode 1 (x1, y1, x2, y2, degrees) with the angle turning the other way.
    Sides may both be negative, which turns a box by 180 degrees; one negative side makes it overlap nothing.
    """
    boxes = _fields(self, corners=mode == 1)
    both_negative = (boxes[:, 2:4] < 0).all(dim=1, keepdim=True)
    sides = torch.where(both_negative, -boxes[:, 2:4], boxes[:, 2:4])
    boxes = torch.cat([boxes[:, :2], sides, -boxes[:, 4:] if mode == 1 else boxes[:, 4:]], dim=1)
    order = scores.float().argsort(descending=True, stable=True)
    order = order[scores[order] > scores_threshold]
    limit = max_output_size if max_output_size >= 0 else order.numel()
    kept: list[int] = []
    while order.numel() and len(kept) < limit:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        order = order[_iou(boxes[best], boxes[order]) <= iou_threshold]
    return torch.tensor(kept, dtype=torch.int32), torch.tensor([len(kept)], dtype=torch.int32)


def _centre_and_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Of boxes [B, 5, n] (x1, y1, x2, y2, degrees); sizes are at least 1."""
    size = (boxes[:, 2:4] - boxes[:, :2]).clamp(min=1)
    return boxes[:, :2] + size / 2, size


def _tangent(boxes: Tensor) -> Tensor:
    return torch.deg2rad(boxes[:, 4:]).tan()


@kernel("npu::npu_rotated_box_encode")
def npu_rotated_box_encode(self: Tensor, gt_bboxes: Tensor, weight: Tensor) -> Tensor:
    """[B, 5, n]: offsets (dx, dy, dw, dh, difference of tangents), times `weight` [5]."""
    anchor, truth = self.double(), gt_bboxes.double()
    (centre, size), (target_centre, target_size) = _centre_and_size(anchor), _centre_and_size(truth)
    offsets = [(target_centre - centre) / size, (target_size / size).log(), _tangent(truth) - _tangent(anchor)]
    return (torch.cat(offsets, dim=1) * weight.double().view(1, 5, 1)).to(self.dtype)


@kernel("npu::npu_rotated_box_decode")
def npu_rotated_box_decode(self: Tensor, deltas: Tensor, weight: Tensor) -> Tensor:
    """[B, 5, n]: boxes (x1, y1, x2, y2, degrees) from anchors and the offsets of npu_rotated_box_encode."""
    anchor = self.double()
    offsets = deltas.double() / weight.double().view(1, 5, 1)
    centre, size = _centre_and_size(anchor)
    target_centre, target_size = centre + offsets[:, :2] * size, offsets[:, 2:4].exp() * size
    angle = torch.rad2deg((_tangent(anchor) + offsets[:, 4:]).atan())
    half = target_size / 2
    return torch.cat([target_centre - half, target_centre + half, angle], dim=1).to(self.dtype)
