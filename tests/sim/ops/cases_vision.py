"""Boxes, regions of interest and deformable convolution, written out for single boxes, bins and pixels."""

from __future__ import annotations

import math

import torch
import torch_npu
from harness import agree, close, gradients_check, raises
from torch.nn import functional as F

npu = torch.ops.npu
BOX_A, BOX_B = (
    torch.tensor([[3.0, 8.0, 2.0, 9.0], [4.0, 5.0, 7.0, 1.0], [5.0, 2.0, 3.0, 4.0], [3.0, 6.0, 2.5, 1.5]]),
    torch.tensor([[4.0, 7.0, 9.0, 9.5], [5.0, 5.5, 1.0, 1.2], [4.0, 3.0, 1.0, 5.0], [6.0, 4.0, 2.0, 1.0]]),
)  # centre x, centre y, width, height of four pairs; the third pair does not touch


def sides(box):
    x, y, w, h = box.unbind()
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2


def areas(a, b):
    """(common, union, width and height of the enclosing box) of two boxes x1, y1, x2, y2."""
    wide, high = torch.min(a[2], b[2]) - torch.max(a[0], b[0]), torch.min(a[3], b[3]) - torch.max(a[1], b[1])
    common = wide * high if wide > 0 and high > 0 else 0 * wide
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common, union, torch.max(a[2], b[2]) - torch.min(a[0], b[0]), torch.max(a[3], b[3]) - torch.min(a[1], b[1])


def generalized_iou(a, b):
    common, union, width, height = areas(sides(a), sides(b))
    return common / union - (width * height - union) / (width * height)


def distance_iou(a, b):
    common, union, width, height = areas(sides(a), sides(b))
    return common / union - ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) / (width**2 + height**2)


def complete_iou(a, b):
    common, union, _, _ = areas(sides(a), sides(b))
    v = 4 / math.pi**2 * (torch.atan(b[2] / b[3]) - torch.atan(a[2] / a[3])) ** 2
    alpha = (v / (1 - common / union + v)).detach()
    return distance_iou(a, b) - alpha * v


def of_pairs(function):
    return lambda a, b: torch.stack([function(a[:, i], b[:, i]) for i in range(a.size(1))])


def case_intersection_over_union_variants():
    a, b = BOX_A, BOX_B
    agree(lambda x, y: npu.npu_giou(x, y, True)[:, 0], of_pairs(generalized_iou), a, b)
    agree(lambda x, y: npu.npu_diou(x, y, True)[0], of_pairs(distance_iou), a, b)
    agree(lambda x, y: npu.npu_ciou(x, y, True, False, 0, True)[0], of_pairs(complete_iou), a, b)
    for function, plain in ((npu.npu_diou, distance_iou), (npu.npu_ciou, complete_iou)):
        pairs = torch.stack([torch.stack([plain(a[:, i], b[:, j]) for i in range(4)]) for j in range(3)])
        close(function(a.npu(), b[:, :3].npu(), True, True), pairs)
        by_corners = function(*(torch.stack(sides(t)).npu() for t in (a, b)), False, False)
        close(by_corners[0], of_pairs(plain)(a, b))
    assert npu.npu_giou(a.half().npu(), b.half().npu(), True).dtype == torch.float16
    raises(RuntimeError, "trans==True", lambda: npu.npu_giou(a.npu(), b.npu()))
    raises(NotImplementedError, "mode=1", lambda: npu.npu_diou(a.npu(), b.npu(), mode=1))


def case_plain_iou_adds_a_hundredth_to_the_sides():
    boxes = torch.tensor([[0.0, 0, 10, 10], [10, 10, 20, 20], [32, 32, 38, 42]])
    truth = torch.tensor([[0.0, 0, 10, 20], [0, 10, 10, 10], [10, 10, 20, 20]])
    common = torch.tensor([[100.0, 0, 0], [0, 0, 0], [0, 100, 0]])
    area = lambda b: (b[2] - b[0] + 0.01) * (b[3] - b[1] + 0.01)  # noqa: E731
    for function in (npu.npu_iou, npu.npu_ptiou):
        union = torch.tensor([[area(t) + area(b) for b in boxes] for t in truth]) - common
        close(function(boxes.npu(), truth.npu()), common / union, 1e-3)
        close(function(boxes.npu(), truth.npu(), 1), common / torch.stack([area(t) for t in truth])[:, None], 1e-3)
    assert npu.npu_iou(boxes.half().npu(), truth.half().npu()).dtype == torch.float16


def case_box_coding():
    anchors = torch.tensor([[1.0, 2, 3, 4], [3, 4, 5, 6], [10, 5, 30, 60]])
    truth = torch.tensor([[5.0, 6, 7, 8], [7, 8, 9, 16], [12, 1, 40, 50]])
    means, stds = (0.1, -0.2, 0.05, 0.0), (0.1, 0.1, 0.2, 0.2)
    encoded = npu.npu_bounding_box_encode(anchors.npu(), truth.npu(), *means, *stds)
    for a, t, found in zip(anchors.tolist(), truth.tolist(), encoded.tolist(), strict=True):
        w, h, tw, th = a[2] - a[0] + 1, a[3] - a[1] + 1, t[2] - t[0] + 1, t[3] - t[1] + 1
        raw = (
            ((t[0] + t[2]) / 2 - (a[0] + a[2]) / 2) / w,
            ((t[1] + t[3]) / 2 - (a[1] + a[3]) / 2) / h,
            math.log(tw / w),
            math.log(th / h),
        )
        close(torch.tensor(found), torch.tensor([(r - m) / s for r, m, s in zip(raw, means, stds, strict=True)]), 1e-4)
    decoded = npu.npu_bounding_box_decode(anchors.npu(), encoded, *means, *stds, (70, 80), 0.001)
    close(decoded, truth, 1e-4)
    deltas = torch.tensor([[5.0, 6, 7, 8], [7, 8, 9, 6]]).npu()
    documented = npu.npu_bounding_box_decode(anchors[:2].npu(), deltas, 0, 0, 0, 0, 1, 1, 1, 1, (10, 10), 0.1)
    close(documented, torch.tensor([[2.5, 6.5, 9, 9], [9, 9, 9, 9]]))


def case_anchors_and_grids():
    boxes = torch.tensor([[0.0, 0, 3, 3], [8, 1, 14, 3], [90, 90, 99, 99]])
    flags = npu.npu_anchor_response_flags(boxes.npu(), [5, 4], [4, 4], 3)
    expected = torch.zeros(5, 4, 3)
    expected[0, 0], expected[0, 2], expected[4, 3] = 1, 1, 1
    close(flags, expected.flatten())
    assert flags.dtype == torch.uint8
    anchors, truth = torch.tensor([[0.0, 0, 4, 4], [2, 2, 6, 10]]), torch.tensor([[1.0, 0, 5, 2], [2, 9, 7, 30]])
    found = npu.npu_yolo_boxes_encode(anchors.npu(), truth.npu(), torch.tensor([4, 8], dtype=torch.int32).npu())
    top = 1 - 1e-6
    close(found, torch.tensor([[0.75, 0.25, 0, math.log(0.5)], [0.5 + 0.5 / 8, top, math.log(1.25), math.log(21 / 8)]]))
    overlaps = torch.tensor([[0.1, 0.6, 0.6, 0.3], [0.2, 0.1, 0.55, 0.4]])
    best, which = overlaps.max(0)
    truth_best, truth_which = overlaps.max(1)
    responsible = torch.tensor([1, 0, 1, 1], dtype=torch.uint8)
    for assign_all, wanted in ((True, [-1, -1, 2, -1]), (False, [-1, -1, 2, -1])):
        found = npu.npu_grid_assign_positive(
            torch.full((4,), -1.0).npu(), overlaps.npu(), responsible.npu(), best.npu(), which.int().npu(),
            truth_best.npu(), truth_which.int().npu(), 2, 0.5, 0.3, assign_all,
        )  # fmt: skip
        close(found, torch.tensor(wanted))
    raised = torch.tensor([-1.0, 0, 0, 0]).npu()
    found = npu.npu_grid_assign_positive(
        raised, overlaps.npu(), responsible.npu(), best.npu(), which.int().npu(), truth_best.npu(),
        truth_which.int().npu(), 2, 0.9, 0.58, True,
    )  # fmt: skip
    close(found, torch.tensor([-1, 0, 1, 0]))


def clip(polygon, a, b):
    """The part of a polygon on the left of the line from a to b."""
    side = lambda p: (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])  # noqa: E731
    kept = []
    for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if side(p) >= 0:
            kept.append(p)
        if side(p) * side(q) < 0:
            t = side(p) / (side(p) - side(q))
            kept.append((p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])))
    return kept


def rectangle(x, y, w, h, degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    corner = [(-w / 2, -h / 2), (w / 2, -h / 2), (w / 2, h / 2), (-w / 2, h / 2)]
    return [(x + c * dx - s * dy, y + s * dx + c * dy) for dx, dy in corner]


def common_area(a, b):
    """Sutherland and Hodgman's clipping, then the area by the shoelace formula."""
    polygon, clipper = rectangle(*a), rectangle(*b)
    for start, end in zip(clipper, clipper[1:] + clipper[:1], strict=True):
        polygon = clip(polygon, start, end)
    following = polygon[1:] + polygon[:1]
    return sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(polygon, following, strict=True)) / 2


def random_rotated(count):
    return torch.cat([torch.rand(count, 2) * 10, torch.rand(count, 2) * 6 + 1, torch.rand(count, 1) * 360 - 180], 1)


def case_rotated_boxes_overlap():
    first, second = random_rotated(6), random_rotated(5)
    second[0] = first[0]
    second[1] = torch.tensor([*first[1, :2], first[1, 3], first[1, 2], first[1, 4] + 90])  # the same box, turned
    common = torch.tensor([[common_area(a, b) for b in second.tolist()] for a in first.tolist()])
    assert (common > 0).sum() > 8
    close(npu.npu_rotated_overlaps(first[None].npu(), second[None].npu()), common[None], 1e-4)
    areas = first[:, 2] * first[:, 3], second[:, 2] * second[:, 3]
    iou = common / (areas[0][:, None] + areas[1] - common)
    close(npu.npu_rotated_iou(first[None].npu(), second[None].npu()), iou[None], 1e-4)
    cornered = [torch.cat([b[:, :2] - b[:, 2:4] / 2, b[:, :2] + b[:, 2:4] / 2, b[:, 4:]], 1) for b in (first, second)]
    close(npu.npu_rotated_overlaps(*(c[None].npu() for c in cornered), True), common[None], 1e-4)
    raises(NotImplementedError, "mode=1", lambda: npu.npu_rotated_iou(first[None].npu(), second[None].npu(), mode=1))


def greedy(overlap, scores, threshold, least):
    kept = []
    for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
        if scores[i] > least and all(overlap(i, k) <= threshold for k in kept):
            kept.append(i)
    return kept


def case_suppression_of_rotated_boxes():
    boxes, scores = random_rotated(25), torch.rand(25)

    def iou(i, j):
        a, b = boxes[i].tolist(), boxes[j].tolist()
        common = common_area(a, b)
        return common / (a[2] * a[3] + b[2] * b[3] - common)

    kept = greedy(iou, scores.tolist(), 0.2, 0.1)
    assert 3 < len(kept) < 25
    indices, number = npu.npu_nms_rotated(boxes.npu(), scores.npu(), 0.2, 0.1)
    assert indices.tolist() == kept and number.tolist() == [len(kept)] and indices.dtype == torch.int32
    limited, number = npu.npu_nms_rotated(boxes.npu(), scores.npu(), 0.2, 0.1, 3)
    assert limited.tolist() == kept[:3] and number.tolist() == [3]
    mirrored = torch.cat([boxes[:, :2] - boxes[:, 2:4] / 2, boxes[:, :2] + boxes[:, 2:4] / 2, -boxes[:, 4:]], 1)
    assert npu.npu_nms_rotated(mirrored.npu(), scores.npu(), 0.2, 0.1, -1, 1)[0].tolist() == kept


def case_rotated_box_coding():
    anchors, truth = random_rotated(4), random_rotated(4)
    anchors[:, 4] /= 3
    truth[:, 4] /= 3
    weight = torch.tensor([10.0, 10, 5, 5, 2])
    cornered = [
        torch.cat([b[:, :2] - b[:, 2:4] / 2, b[:, :2] + b[:, 2:4] / 2, b[:, 4:]], 1).t()[None] for b in (anchors, truth)
    ]
    encoded = npu.npu_rotated_box_encode(*(c.npu() for c in cornered), weight.npu())
    for i, (a, t) in enumerate(zip(anchors.tolist(), truth.tolist(), strict=True)):
        wanted = [
            10 * (t[0] - a[0]) / a[2],
            10 * (t[1] - a[1]) / a[3],
            5 * math.log(t[2] / a[2]),
            5 * math.log(t[3] / a[3]),
            2 * (math.tan(math.radians(t[4])) - math.tan(math.radians(a[4]))),
        ]
        close(encoded[0, :, i], torch.tensor(wanted), 1e-4)
    close(npu.npu_rotated_box_decode(cornered[0].npu(), encoded, weight.npu()), cornered[1], 1e-3)


def plain_iou(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = w * h if w > 0 and h > 0 else 0.0
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def random_boxes(count):
    start = torch.rand(count, 2) * 10
    return torch.cat([start, start + torch.rand(count, 2) * 8 + 0.5], 1)


def case_suppression():
    boxes, scores = random_boxes(30), torch.rand(30)
    rows = boxes.tolist()
    kept = greedy(lambda i, j: plain_iou(rows[i], rows[j]), scores.tolist(), 0.3, 0.2)
    assert 5 < len(kept) < 24
    threshold, least = torch.tensor(0.3).npu(), torch.tensor(0.2).npu()
    for size in (5, 30):
        for flipped in (boxes, boxes[:, [2, 1, 0, 3]]):
            found, number = torch_npu.npu_nms_v4(flipped.npu(), scores.npu(), size, threshold, least)
            assert found.shape == (size,) and int(number) == min(size, len(kept))
            assert found[: int(number)].tolist() == kept[:size]
    order = scores.argsort(descending=True)
    proposals = torch.cat([boxes[order], scores[order, None]], 1)
    out, index, mask = npu.npu_nms_with_mask(proposals.npu(), 0.3)
    everyone = greedy(lambda i, j: plain_iou(rows[i], rows[j]), scores.tolist(), 0.3, -1)
    close(out, proposals)
    assert index.tolist() == list(range(30)) and [int(order[i]) for i in mask.nonzero().flatten()] == everyone


def case_suppression_by_image_and_class():
    boxes, scores = torch.stack([random_boxes(12), random_boxes(12)]), torch.rand(2, 12, 3)
    out, values, classes, numbers = npu.npu_batch_nms(boxes[:, :, None].npu(), scores.npu(), 0.4, 0.5, 4, 9)
    for image in range(2):
        rows = boxes[image].tolist()
        found = []
        for category in range(3):
            of_class = scores[image, :, category].tolist()
            kept = greedy(lambda i, j, r=rows: plain_iou(r[i], r[j]), of_class, 0.5, 0.4)[:4]
            found += [(of_class[i], category, rows[i]) for i in kept]
        found = sorted(found, key=lambda f: -f[0])[:9]
        assert int(numbers[image]) == len(found)
        close(values[image, : len(found)], torch.tensor([f[0] for f in found]))
        close(classes[image, : len(found)], torch.tensor([f[1] for f in found]))
        close(out[image, : len(found)], torch.tensor([f[2] for f in found]))
        assert not values[image, len(found) :].any()
    own = boxes[:, :, None].expand(-1, -1, 3, -1)
    close(npu.npu_batch_nms(own.npu(), scores.npu(), 0.4, 0.5, 4, 9)[0], out)
    turned = boxes[:, None].transpose(2, 3)
    close(npu.npu_batch_nms(turned.npu(), scores.npu(), 0.4, 0.5, 4, 9, False, True)[0], out)


def case_random_choices():
    x = torch.rand(6, 7) > 0.5
    total = int(x.sum())
    for count in (4, 60):
        index, mask = npu.npu_random_choice_with_mask(x.npu(), count, 1, 2)
        again, _ = npu.npu_random_choice_with_mask(x.npu(), count, 1, 2)
        assert torch.equal(index, again) and index.shape == (count, 2) and int(mask.sum()) == min(count, total)
        chosen = [tuple(i) for i, valid in zip(index.tolist(), mask.tolist(), strict=True) if valid]
        assert len(set(chosen)) == len(chosen) and all(x[c] for c in chosen)
        assert not index[~mask].any()
    drawn = [npu.npu_random_choice_with_mask(x.npu(), 4)[0].cpu() for _ in range(5)]
    assert any(not torch.equal(drawn[0], d) for d in drawn)
    labels = torch.tensor([1, 0, 0, -1, 1, 1, 0, 0, -1, 0], dtype=torch.int32)
    sampled = npu.npu_sub_sample(labels.npu(), 6, 0.34).cpu()
    assert (sampled == 1).sum() == 2 and (sampled == 0).sum() == 4
    assert torch.equal(sampled[sampled >= 0], labels[sampled >= 0])


def pixel(image, y, x):
    """Bilinear value of image [C, H, W], with its border extended by one pixel and 0 beyond."""
    height, width = image.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return image.new_zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    top = image[:, y0, x0] * (1 - (x - x0)) + image[:, y0, x1] * (x - x0)
    bottom = image[:, y1, x0] * (1 - (x - x0)) + image[:, y1, x1] * (x - x0)
    return top * (1 - (y - y0)) + bottom * (y - y0)


def region_align(features, rois, scale, pooled_h, pooled_w, samples, mode):
    out = []
    for image, *roi in rois.tolist():
        shift = 0.5 if mode >= 2 else 0.0
        end = 1 if mode == 1 else 0
        x1, y1, x2, y2 = (c * scale - shift for c in (roi[0], roi[1], roi[2] + end, roi[3] + end))
        w, h = x2 - x1, y2 - y1
        if mode < 2:
            w, h = max(w, 1.0), max(h, 1.0)
        n_y = samples or math.ceil(h / pooled_h)
        n_x = samples or math.ceil(w / pooled_w)
        rows = []
        for i in range(pooled_h):
            row = []
            for j in range(pooled_w):
                points = [
                    pixel(
                        features[int(image)],
                        y1 + (i + (a + 0.5) / n_y) * h / pooled_h,
                        x1 + (j + (b + 0.5) / n_x) * w / pooled_w,
                    )
                    for a in range(n_y)
                    for b in range(n_x)
                ]
                row.append(sum(points) / len(points))
            rows.append(torch.stack(row, -1))
        out.append(torch.stack(rows, -2))
    return torch.stack(out)


def case_region_align():
    features = torch.randn(2, 3, 9, 8)
    rois = torch.tensor([[0, 2.0, 3, 17, 21], [1, -4, 1, 9, 30], [1, 8, 8, 8.5, 8.5], [0, 10, 2, 31, 40]])
    for mode in (0, 1, 2, 3):
        for samples in (2, 0):
            wide = features.double().requires_grad_()
            expected = region_align(wide, rois, 0.25, 3, 2, samples, mode)
            found = npu.npu_roi_align(features.npu(), rois.npu(), 0.25, 3, 2, samples, mode)
            close(found, expected)
            grad = torch.randn(expected.shape)
            expected.backward(grad.double())
            arguments = grad.npu(), rois.npu(), list(features.shape), 2, 3, 0.25, samples, mode
            close(npu.npu_roi_alignbk(*arguments), wide.grad)
    default = npu.npu_roi_alignbk(grad.npu(), rois.npu(), list(features.shape), 2, 3, 0.25, 2)
    close(default, npu.npu_roi_alignbk(grad.npu(), rois.npu(), list(features.shape), 2, 3, 0.25, 2, 1))


def case_region_align_module():
    module = torch_npu.contrib.module.ROIAlign((3, 3), 0.25, 2, True)
    rois = torch.tensor([[0, 2.0, 3, 17, 21], [1, 1, 1, 9, 30]])
    agree(lambda f: module(f, rois.npu()), lambda f: region_align(f, rois, 0.25, 3, 3, 2, 2), torch.randn(2, 3, 9, 8))


def bilinear(plane, y, x):
    """One sample, as torchvision interpolates: nothing beyond a pixel outside, the border extended."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return plane.sum() * 0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    down, right = min(top + 1, height - 1), min(left + 1, width - 1)
    fy, fx = y - top, x - left
    upper = plane[top, left] * (1 - fx) + plane[top, right] * fx
    return upper * (1 - fy) + (plane[down, left] * (1 - fx) + plane[down, right] * fx) * fy


def roi_align_of_torchvision(features, regions, size, scale, ratio, aligned):
    """The kernel of torchvision 0.28 (csrc/ops/cpu/roi_align_kernel.cpp), sample by sample."""
    out = []
    for image, *corners in regions.tolist():
        x1, y1, x2, y2 = (scale * corner - (0.5 if aligned else 0) for corner in corners)
        w, h = (side if aligned else max(side, 1.0) for side in (x2 - x1, y2 - y1))
        rows = ratio if ratio > 0 else math.ceil(h / size[0])
        columns = ratio if ratio > 0 else math.ceil(w / size[1])
        for plane in features[int(image)]:
            for i in range(size[0]):
                for j in range(size[1]):
                    ys = [y1 + (i + (k + 0.5) / rows) * h / size[0] for k in range(rows)]
                    xs = [x1 + (j + (k + 0.5) / columns) * w / size[1] for k in range(columns)]
                    out.append(sum(bilinear(plane, y, x) for y in ys for x in xs) / max(rows * columns, 1))
    return torch.stack(out).view(len(regions), features.shape[1], *size)


def case_region_align_module_equals_torchvision_with_the_arguments_that_the_advice_names():
    regions = torch.tensor([[0, 2.0, 3, 17, 21], [1, -9, 1, 9, 30], [1, 5, 5, 6, 7], [0, 20, 20, 60, 60]])
    for ratio, aligned in ((2, False), (2, True), (-1, False), (-1, True)):
        module = torch_npu.contrib.module.ROIAlign((3, 3), 0.25, max(ratio, 0), aligned)
        agree(
            lambda f, module=module: module(f, regions.npu()),
            lambda f, r=ratio, a=aligned: roi_align_of_torchvision(f, regions, (3, 3), 0.25, r, a),
            torch.randn(2, 2, 9, 8),
        )


def position_sensitive(features, rois, scale, group, dims):
    out = []
    for image, *roi in rois.permute(0, 2, 1).reshape(-1, 5).tolist():
        x1, y1, x2, y2 = (scale * (round(c) + last) for c, last in zip(roi, (0, 0, 1, 1), strict=True))
        w, h = max(x2 - x1, 0.1) / group, max(y2 - y1, 0.1) / group
        pooled = []
        for d in range(dims):
            for i in range(group):
                for j in range(group):
                    ys = slice(max(math.floor(y1 + i * h), 0), max(math.ceil(y1 + (i + 1) * h), 0))
                    xs = slice(max(math.floor(x1 + j * w), 0), max(math.ceil(x1 + (j + 1) * w), 0))
                    area = features[round(image), (d * group + i) * group + j, ys, xs]
                    pooled.append(area.mean() if area.numel() else area.sum())
        out.append(torch.stack(pooled).view(dims, group, group))
    return torch.stack(out)


def case_position_sensitive_pooling():
    rois = torch.tensor([[[0, 1.2, 2, 30.7, 41], [0, 5, 5, 5, 5]], [[1, 0, 8, 60, 20], [1, 50, 50, 70, 90]]])
    rois = rois.permute(0, 2, 1)
    agree(
        lambda f: npu.npu_ps_roi_pooling(f, rois.npu(), 0.25, 3, 2),
        lambda f: position_sensitive(f, rois, 0.25, 3, 2),
        torch.randn(2, 18, 12, 13),
    )


def shifted_convolution(x, weight, offset, bias, settings):
    """Every output pixel as a sum over the kernel of a bilinear sample, times its mask."""
    (k_h, k_w), (s_h, s_w), (top, left), (d_h, d_w), groups, shift_groups, modulated = settings
    batch, channels, height, width = x.shape
    out_h, out_w = offset.shape[2:]
    parts = offset.reshape(batch, 3 if modulated else 2, shift_groups, k_h, k_w, out_h, out_w)
    padded = F.pad(x, (1, 1, 1, 1))  # zeros around, so that all that is outside can be clamped onto them

    def sample(n, group, y, x_):
        low_y, low_x = math.floor(float(y)), math.floor(float(x_))
        total = 0
        for py, wy in ((low_y, 1 - (y - low_y)), (low_y + 1, y - low_y)):
            for px, wx in ((low_x, 1 - (x_ - low_x)), (low_x + 1, x_ - low_x)):
                cy, cx = min(max(py + 1, 0), height + 1), min(max(px + 1, 0), width + 1)
                total = total + wy * wx * padded[n].view(shift_groups, -1, height + 2, width + 2)[group, :, cy, cx]
        return total

    patches = []
    for n in range(batch):
        for i in range(out_h):
            for j in range(out_w):
                taps = []
                for a in range(k_h):
                    for b in range(k_w):
                        of_groups = []
                        for g in range(shift_groups):
                            p = parts[n, :, g, a, b, i, j]
                            value = sample(n, g, i * s_h - top + a * d_h + p[1], j * s_w - left + b * d_w + p[0])
                            of_groups.append(value * p[2] if modulated else value)
                        taps.append(torch.cat(of_groups))
                patches.append(torch.stack(taps, -1))
    patches = torch.stack(patches).view(batch, out_h, out_w, groups, channels // groups, k_h * k_w)
    kernels = weight.view(groups, -1, channels // groups, k_h * k_w)
    out = torch.einsum("nijgck,gock->ngoij", patches, kernels).reshape(batch, -1, out_h, out_w)
    return out if bias is None else out + bias.view(1, -1, 1, 1)


def case_deformable_convolution():
    for groups, shift_groups, modulated, strides, dilation in (
        (1, 1, True, (1, 1), (1, 1)),
        (2, 2, True, (2, 1), (1, 2)),
        (1, 2, False, (1, 2), (2, 1)),
    ):
        x, weight, bias = torch.randn(2, 4, 5, 6), torch.randn(6, 4 // groups, 3, 2), torch.randn(6)
        out_h = (5 + 2 - (2 * dilation[0] + 1)) // strides[0] + 1
        out_w = (6 + 1 + 2 - (dilation[1] + 1)) // strides[1] + 1
        parts = 3 if modulated else 2
        offset = torch.randn(2, parts * shift_groups * 6, out_h, out_w)
        settings = ((3, 2), strides, (1, 1), dilation, groups, shift_groups, modulated)
        arguments = [3, 2], [1, 1, *strides], [1, 1, 1, 2], [1, 1, *dilation], groups, shift_groups, modulated
        agree(
            lambda x, w, o, b, a=arguments: npu.npu_deformable_conv2d(x, w, o, b, *a)[0],
            lambda x, w, o, b, s=settings: shifted_convolution(x, w, o, b, s),
            x, weight, offset, bias, tolerance=1e-4,
        )  # fmt: skip
    plain = torch.cat([torch.zeros(2, 12, 5, 6), torch.ones(2, 6, 5, 6)], 1)
    arguments = [3, 2], [1] * 4, [1, 1, 1, 0]
    found, sampled = npu.npu_deformable_conv2d(x.npu(), torch.ones(1, 4, 3, 2).npu(), plain.npu(), None, *arguments)
    close(found, F.conv2d(F.pad(x, (1, 0, 1, 1)), torch.ones(1, 4, 3, 2)))
    assert sampled.shape == (2, 4, 15, 12)


def case_modulated_deformable_module():
    torch.manual_seed(2)
    module = torch_npu.contrib.module.ModulatedDeformConv(3, 4, 3, 1, 1, bias=False, pack=True).npu()
    x = torch.randn(1, 3, 4, 4, requires_grad=True, device="npu")
    module(x).sum().backward()
    assert module.weight.grad.abs().sum() > 0 and x.grad.shape == x.shape


def case_gradients_in_double_precision():
    gradients_check(lambda a, b: npu.npu_giou(a, b, True), BOX_A, BOX_B)
    gradients_check(lambda a, b: npu.npu_diou(a, b, True), BOX_A, BOX_B)
    rois = torch.tensor([[0, 2.0, 3, 17, 21], [1, 1, 1, 9, 30]]).double().npu()
    areas = rois.t().reshape(1, 5, 2).expand(2, -1, -1)
    gradients_check(lambda f: npu.npu_ps_roi_pooling(f, areas, 0.25, 2, 2), torch.randn(2, 8, 6, 5))
    x, weight, offset = torch.randn(1, 2, 4, 4), torch.randn(2, 2, 2, 2), torch.rand(1, 12, 3, 3) * 0.8 + 0.1
    arguments = [2, 2], [1] * 4, [0] * 4
    gradients_check(lambda *t: npu.npu_deformable_conv2d(*t, *arguments)[0], x, weight, offset, torch.randn(2))
