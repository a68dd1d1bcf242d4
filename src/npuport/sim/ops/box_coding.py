"""Boxes as regression targets and back, and the assignment of anchors to ground truth.

Pages: Ascend/op-plugin docs/zh/custom_APIs/torch_npu. CANN's own: ops-cv objdetect/*/README.md and the golden functions
of its tests. Half precision is computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel

_YOLO_EPSILON = 1e-6
_YOLO_MOST_BOXES = 20480


def _centre_and_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Centres and sizes [n, 2] of boxes (x1, y1, x2, y2), counting pixels: a box from 3 to 3 is 1 wide."""
    return (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2] + 1


@kernel("npu::npu_bounding_box_encode")
def npu_bounding_box_encode(
    anchor_box: Tensor,
    ground_truth_box: Tensor,
    means0: float,
    means1: float,
    means2: float,
    means3: float,
    stds0: float,
    stds1: float,
    stds2: float,
    stds3: float,
) -> Tensor:
    """[n, 4]: offsets (dx, dy, dw, dh) from anchors to ground truth, standardised
    (torch_npu-npu_bounding_box_encode.md; ops-cv objdetect/bounding_box_encode).
    """
    centre, size = _centre_and_size(anchor_box.float())
    target_centre, target_size = _centre_and_size(ground_truth_box.float())
    offsets = torch.cat([(target_centre - centre) / size, torch.log(target_size / size)], dim=1)
    means, stds = torch.tensor([means0, means1, means2, means3]), torch.tensor([stds0, stds1, stds2, stds3])
    return ((offsets - means) / stds).to(anchor_box.dtype)


@kernel("npu::npu_bounding_box_decode")
def npu_bounding_box_decode(
    rois: Tensor,
    deltas: Tensor,
    means0: float,
    means1: float,
    means2: float,
    means3: float,
    stds0: float,
    stds1: float,
    stds2: float,
    stds3: float,
    max_shape: Sequence[int],
    wh_ratio_clip: float,
) -> Tensor:
    """[n, 4]: boxes (x1, y1, x2, y2) from offsets, inside an image of max_shape (h, w)
    (torch_npu-npu_bounding_box_decode.md).

    The bounds are those of the page's worked example: log sizes are clipped to ±|ln wh_ratio_clip| and coordinates to
    w - 1 and h - 1.
    """
    centre, size = _centre_and_size(rois.float())
    means, stds = torch.tensor([means0, means1, means2, means3]), torch.tensor([stds0, stds1, stds2, stds3])
    offsets = deltas.float() * stds + means
    most = abs(math.log(wh_ratio_clip))
    target_size = size * offsets[:, 2:].clamp(-most, most).exp()
    target_centre = centre + size * offsets[:, :2]
    height, width = max_shape
    bounds = torch.tensor([width - 1.0, height - 1.0])
    first, last = target_centre - target_size / 2 + 0.5, target_centre + target_size / 2 - 0.5
    zero = torch.zeros(2)
    return torch.cat([first.clamp(zero, bounds), last.clamp(zero, bounds)], dim=1).to(rois.dtype)


@kernel("npu::npu_yolo_boxes_encode")
def npu_yolo_boxes_encode(self: Tensor, gt_bboxes: Tensor, stride: Tensor, performance_mode: bool = False) -> Tensor:
    """[n, 4]: centre offsets in cells of `stride` [n] around 0.5, and log sizes, of boxes (x1, y1, x2, y2).

    torch_npu-npu_yolo_boxes_encode.md names it mmdetection's operator: the formula is that of YOLOBBoxCoder.encode,
    which gives the results recorded in op-plugin's test_yolo_boxes_encode.py.
    """
    _check_yolo(self, gt_bboxes, stride)
    anchor, target = self.float(), gt_bboxes.float()
    size, target_size = (b[:, 2:] - b[:, :2] for b in (anchor, target))
    moved = (target[:, :2] + target[:, 2:]) / 2 - (anchor[:, :2] + anchor[:, 2:]) / 2
    centre = (moved / stride[:, None] + 0.5).clamp(_YOLO_EPSILON, 1 - _YOLO_EPSILON)
    return torch.cat([centre, (target_size / size).clamp(min=_YOLO_EPSILON).log()], dim=1).to(gt_bboxes.dtype)


def _check_yolo(anchors: Tensor, truth: Tensor, stride: Tensor) -> None:
    """The checks of YoloBoxesEncodeKernelNpu.cpp."""
    for name, boxes in (("anchor_boxes", anchors), ("gt_bboxes", truth)):
        if boxes.dim() != 2 or boxes.size(1) != 4:
            raise RuntimeError(f"Non-empty 2D {name} tensor expected but got a tensor with sizes {list(boxes.shape)}")
    if anchors.size(0) > _YOLO_MOST_BOXES:
        raise RuntimeError(f"anchor_boxes only support max [20480] num, but got num {anchors.size(0)}")
    if stride.dim() != 1 or stride.size(0) != truth.size(0):
        raise RuntimeError(f"stride's length should be equal gt_bboxes' num, but got stride {list(stride.shape)}")
    if stride.is_floating_point() or stride.dtype == torch.int64:
        raise RuntimeError(f"int32 strdie tensor expected but got a tensor with dtype: {stride.dtype}")


@kernel("npu::npu_anchor_response_flags")
def npu_anchor_response_flags(
    self: Tensor, featmap_size: Sequence[int], stride: Sequence[int], num_base_anchors: int
) -> Tensor:
    """uint8 [h·w·anchors]: 1 for the anchors of the cells that hold the centre of a box [n, 4]
    (torch_npu-npu_anchor_response_flags.md).
    """
    height, width = featmap_size
    centre = (self.float()[:, :2] + self.float()[:, 2:]) * 0.5
    column = (centre[:, 0] / stride[0]).floor().long().clamp(0, width - 1)
    row = (centre[:, 1] / stride[1]).floor().long().clamp(0, height - 1)
    cells = torch.zeros(height * width, dtype=torch.uint8)
    cells[row * width + column] = 1
    return cells.repeat_interleave(num_base_anchors)


@kernel("npu::npu_grid_assign_positive")
def npu_grid_assign_positive(
    self: Tensor,
    overlaps: Tensor,
    box_responsible_flags: Tensor,
    max_overlaps: Tensor,
    argmax_overlaps: Tensor,
    gt_max_overlaps: Tensor,
    gt_argmax_overlaps: Tensor,
    num_gts: int,
    pos_iou_thr: float,
    min_pos_iou: float,
    gt_max_assign_all: bool,
) -> Tensor:
    """Assigned ground truth (1-based) [n] with the positive anchors filled in: first those above `pos_iou_thr`, then
    for every ground truth box its best anchor (or all that tie, `gt_max_assign_all`) above `min_pos_iou`.

    mmdetection's GridAssigner, steps 3 and 4; gives the results recorded in op-plugin's test_grid_assign_positive.py.
    `num_gts` may exceed the rows of `overlaps` [k, n]; the first k are used.
    """
    for index in (argmax_overlaps, gt_argmax_overlaps):
        if index.is_floating_point() or index.dtype == torch.int64:
            raise RuntimeError(f"int32 argmax_overlaps tensor expected but got a tensor with dtype: {index.dtype}")
    responsible = box_responsible_flags.bool()
    assigned = self.clone()
    positive = (max_overlaps > pos_iou_thr) & responsible
    assigned[positive] = argmax_overlaps[positive].to(assigned.dtype) + 1
    for truth in range(min(num_gts, overlaps.size(0))):
        if gt_max_overlaps[truth] <= min_pos_iou:
            continue
        best = int(gt_argmax_overlaps[truth])
        if gt_max_assign_all:
            assigned[(overlaps[truth] == gt_max_overlaps[truth]) & responsible] = truth + 1
        elif responsible[best]:
            assigned[best] = truth + 1
    return assigned
