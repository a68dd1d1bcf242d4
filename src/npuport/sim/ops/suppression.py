"""Non-maximum suppression of axis-parallel boxes, and random choices of candidates.

Code that calls the device operators: op_plugin/ops/aclops/{NmsV4,NmsWithMask,BatchNMS,RandomChoiceWithMask,SubSample}
KernelNpu.cpp of Ascend/op-plugin.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.box_overlaps import corners, intersection
from npuport.sim.ops.randomness import device_generator
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


def _overlap(box: Tensor, others: Tensor) -> Tensor:
    """IoU of one box [4] with boxes [n, 4] of ordered corners; 0 where both are empty."""
    a, b = corners(box.unsqueeze(-1), centred=False), corners(others.t(), centred=False)
    common = intersection(a, b)
    union = a.width * a.height + b.width * b.height - common
    return torch.where(union > 0, common / union, 0.0)


def greedy(boxes: Tensor, order: Tensor, iou_threshold: float, limit: int) -> list[int]:
    """Indices of at most `limit` boxes, in the given order; one goes when its IoU with a kept one exceeds the
    threshold.
    """
    kept: list[int] = []
    while order.numel() and len(kept) < limit:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        order = order[_overlap(boxes[best], boxes[order]) <= iou_threshold]
    return kept


def _by_score(scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(descending=True, stable=True)
    return order[scores[order] > threshold]


@kernel("npu::npu_nms_v4")
def npu_nms_v4(
    self: Tensor,
    scores: Tensor,
    max_output_size: float,
    iou_threshold: Tensor,
    scores_threshold: Tensor,
    pad_to_max_output_size: bool = False,
) -> tuple[Tensor, Tensor]:
    """(int32 indices [max_output_size] by falling score, int32 number of valid ones); the rest is 0.

    CANN documents NonMaxSuppressionV4 as TensorFlow's: the corners of a box [n, 4] may be any diagonal pair, and scores
    have to exceed the threshold. torch_npu gives the output max_output_size elements with and without padding.
    """
    wide = self.float()
    ordered = torch.cat([torch.minimum(wide[:, :2], wide[:, 2:]), torch.maximum(wide[:, :2], wide[:, 2:])], dim=1)
    size = int(max_output_size)
    kept = greedy(ordered, _by_score(scores.float(), float(scores_threshold)), float(iou_threshold), size)
    selected = torch.zeros(size, dtype=torch.int32)
    selected[: len(kept)] = torch.tensor(kept, dtype=torch.int32)
    return selected, torch.tensor(len(kept), dtype=torch.int32)


@kernel("npu::npu_nms_with_mask")
def npu_nms_with_mask(input: Tensor, iou_threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """(the first five columns of the input: box and score, int32 0…n-1, uint8 mask of the boxes kept) for proposals
    [n, 5 or 8] in falling order of score (ops-cv image/nms_with_mask/README.md).
    """
    boxes = input[:, :5]
    kept = greedy(boxes[:, :4].float(), torch.arange(len(input)), float(iou_threshold), len(input))
    mask = torch.zeros(len(input), dtype=torch.uint8)
    mask[kept] = 1
    return boxes.clone(), torch.arange(len(input), dtype=torch.int32), mask


@kernel("npu::npu_batch_nms")
def npu_batch_nms(
    self: Tensor,
    scores: Tensor,
    score_threshold: float,
    iou_threshold: float,
    max_size_per_class: int,
    max_total_size: int,
    change_coordinate_frame: bool = False,
    transpose_box: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(boxes [B, max_total_size, 4], scores, classes [B, max_total_size], int32 numbers [B]): suppression per image and
    class, then the best of all classes; the rest is 0 (ops-cv objdetect/batch_multi_class_non_max_suppression).

    Boxes are [B, N, q, 4] with q = 1 or the number of classes, [B, q, 4, N] if `transpose_box`; scores are [B, N, C].
    """
    if change_coordinate_frame:
        raise NoReferenceError(
            "npu::npu_batch_nms", "change_coordinate_frame, which needs a window torch_npu never sends"
        )
    if self.numel() == 0:
        raise RuntimeError("The input tensor [self] is an empty tensor.")
    boxes = self.permute(0, 3, 1, 2) if transpose_box else self
    batches = boxes.size(0)
    out_boxes = boxes.new_zeros(batches, max_total_size, 4)
    out_scores, out_classes = boxes.new_zeros(2, batches, max_total_size)
    numbers = torch.zeros(batches, dtype=torch.int32)
    for image in range(batches):
        found = _best_of_classes(
            boxes[image].float(), scores[image].float(), score_threshold, iou_threshold, max_size_per_class
        )
        found = found[:max_total_size]
        numbers[image] = len(found)
        for place, (category, box) in enumerate(found):
            out_boxes[image, place] = boxes[image, box, min(category, boxes.size(2) - 1)]
            out_scores[image, place] = scores[image, box, category]
            out_classes[image, place] = category
    return out_boxes, out_scores, out_classes, numbers


def _best_of_classes(
    boxes: Tensor, scores: Tensor, score_threshold: float, iou_threshold: float, limit: int
) -> list[tuple[int, int]]:
    """(class, box) pairs of one image that survive the suppression in their class, by falling score."""
    found: list[tuple[int, int]] = []
    for category in range(scores.size(1)):
        of_class = boxes[:, min(category, boxes.size(1) - 1)]
        order = _by_score(scores[:, category], score_threshold)
        found += [(category, box) for box in greedy(of_class, order, iou_threshold, limit)]
    return sorted(found, key=lambda pair: -float(scores[pair[1], pair[0]]))


def _shuffled(count: int, seed: int, seed2: int) -> Tensor:
    if seed or seed2:
        generator = torch.Generator().manual_seed((seed * 1_000_003 + seed2) % 2**63)
        return torch.randperm(count, generator=generator)
    with device_generator():
        return torch.randperm(count)


@kernel("npu::npu_random_choice_with_mask")
def npu_random_choice_with_mask(x: Tensor, count: int = 256, seed: int = 0, seed2: int = 0) -> tuple[Tensor, Tensor]:
    """(int32 [count, dims] indices of true elements in random order, bool [count]: which are valid; the rest is 0).

    torch_npu-npu_random_choice_with_mask.md. A seed other than 0 makes the draw depend on the two seeds alone, though
    not the same draw as on the device.
    """
    if x.dtype != torch.bool:
        raise RuntimeError(f"The input.dtype should be bool, but get {x.dtype}")
    if not 1 <= x.dim() <= 5:
        raise RuntimeError(f"The input.dim should be in [1, 5], but get {x.dim()}")
    if count <= 0:
        raise RuntimeError(f"The count must greater than 0, but get {count}")
    positions = x.nonzero()
    chosen = positions[_shuffled(len(positions), seed, seed2)[:count]]
    result = torch.zeros(count, x.dim(), dtype=torch.int32)
    result[: len(chosen)] = chosen.to(torch.int32)
    return result, torch.arange(count) < len(chosen)


@kernel("npu::npu_sub_sample")
def npu_sub_sample(self: Tensor, per_images: int, positive_fraction: float) -> Tensor:
    """Labels [n] where all but a random sample of `per_images` are -1: at most the fraction of positive ones (> 0),
    the rest negative ones (0) (SubSample in CANN's operator list).
    """
    positive, negative = (self > 0).nonzero().flatten(), (self == 0).nonzero().flatten()
    number = min(int(per_images * positive_fraction), len(positive))
    sample = [
        positive[_shuffled(len(positive), 0, 0)[:number]],
        negative[_shuffled(len(negative), 0, 0)[: per_images - number]],
    ]
    result = torch.full_like(self, -1)
    chosen = torch.cat(sample)
    result[chosen] = self[chosen]
    return result
