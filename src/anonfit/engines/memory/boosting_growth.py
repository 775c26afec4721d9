# SPDX-License-Identifier: Apache-2.0
"""How a tree of gradient boosting grows: best first, from sums of gradients and hessians in bins, as in scikit-learn's
HistGradientBoosting, whose trees these are to the last bit. Sums are made in the order of examples.

A feature has bins 0 … n - 1 and, after them, one of missing values; `begins` says where the bins of each begin in an
array of the bins of all. A tree is what its bins leave of its leaves, a bit each, as in boosting.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.boosting import ALL_LEAVES, MOST_LEAVES
from anonfit.runtime.compiling import inner, kernel

MOST_BINS = 256
"""Of a feature, with that of missing values."""
_NODES = 2 * MOST_LEAVES
_GRADIENT, _HESSIAN, _COUNT = 0, 1, 2
SUMS = 3
"""What is summed in a bin."""
_LEAST_HESSIAN = 1e-3
_LEAST_SUPPORT = 10.0  # of a category, in examples, that a split looks at
_TINY = 1e-15


@inner
def _value(gradient: Any, hessian: Any, penalty: Any) -> Any:
    """The step that lowers the loss the most."""
    return -gradient / (hessian + penalty + _TINY)


@inner
def _with(sums: Any, added: Any) -> Any:
    """Sums, a tuple, with those of one more bin."""
    return sums[_GRADIENT] + added[_GRADIENT], sums[_HESSIAN] + added[_HESSIAN], sums[_COUNT] + added[_COUNT]


@inner
def _rest(whole: Any, side: Any) -> Any:
    """What is left of sums for the other side of a split."""
    return whole[_GRADIENT] - side[_GRADIENT], whole[_HESSIAN] - side[_HESSIAN], whole[_COUNT] - side[_COUNT]


@inner
def _gain(left: Any, right: Any, loss: Any, penalty: Any) -> Any:
    """By how much two nodes have less loss than one."""
    gain = loss
    gain -= left[_GRADIENT] * _value(left[_GRADIENT], left[_HESSIAN], penalty)
    gain -= right[_GRADIENT] * _value(right[_GRADIENT], right[_HESSIAN], penalty)
    return gain


@inner
def _sum_bins(bins: Any, order: Any, begin: Any, end: Any, begins: Any, slopes: Any, sums: Any) -> None:
    """Sum gradients and hessians of a node's examples, those that `order` has from `begin` on, in bins. Of unsigned
    places numba need not find out whether they count from the end.
    """
    sums[:] = 0.0
    features = bins.shape[1]
    for place in range(begin, end):
        example = np.uint64(order[place])
        gradient, hessian = np.float64(slopes[0, example]), np.float64(slopes[1, example])
        for feature in range(features):
            own = np.uint64(begins[feature]) + np.uint64(bins[example, feature])
            sums[own, _GRADIENT] += gradient
            sums[own, _HESSIAN] += hessian
            sums[own, _COUNT] += 1.0


@inner
def _sum_of_all(sums: Any, what: Any, count: Any) -> Any:
    """The sum over the bins of the first feature in the order in which numpy adds 256 numbers."""
    total = 0.0
    for half in range(2):
        parts = np.zeros(8)
        for place in range(128 * half, 128 * (half + 1)):
            own = count if place == MOST_BINS - 1 else place
            if place < count or place == MOST_BINS - 1:
                parts[place % 8] += sums[own, what]
        total += ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
    return total


@inner
def _scan(sums: Any, whole: Any, begin: Any, end: Any, loss: Any, limits: Any, known: Any) -> Any:
    """Add bins one after another, from `begin` to `end`, and find where the gain is larger than a known one, and the
    largest. Gives the gain, the last bin that was added there (-1: none), and what is summed on the left.
    """
    least, penalty, _ = limits
    upward = begin < end
    near = best = (0.0, 0.0, 0.0)
    gain, found = known, -1
    for own in range(begin, end, 1 if upward else -1):
        near = _with(near, sums[own])
        far = _rest(whole, near)
        if near[_COUNT] < least:
            continue
        if far[_COUNT] < least:
            break
        if near[_HESSIAN] < _LEAST_HESSIAN:
            continue
        if far[_HESSIAN] < _LEAST_HESSIAN:
            break
        left, right = (near, far) if upward else (far, near)
        own_gain = _gain(left, right, loss, penalty)
        if own_gain > gain and own_gain > 0.0:
            gain, found, best = own_gain, own, left
    return gain, found, best


@inner
def _try_cuts(sums: Any, whole: Any, count: Any, missing: Any, loss: Any, limits: Any) -> Any:
    """The best cut of an ordered feature. Gives the gain, the last bin on the left, whether missing values are on the
    left, which they are only if that is better, and what is summed on the left.
    """
    gain, cut, best = _scan(sums, whole, 0, count - 1 + int(missing), loss, limits, -1.0)
    if missing:
        gain, above, other = _scan(sums, whole, count - 1, 0, loss, limits, gain)
        if above > 0:
            return gain, above - 1, True, other
    return gain, cut, False, best


@inner
def _sorted_categories(sums: Any, whole: Any, bins: Any, order: Any) -> Any:
    """The bins of categories with enough examples, by gradient for each hessian; of equal ones the last comes first.
    Gives how many they are.
    """
    support = whole[_COUNT] / whole[_HESSIAN]
    slopes, used = np.empty(bins), 0
    for own in range(bins):
        if sums[own, _HESSIAN] * support < _LEAST_SUPPORT:
            continue
        slope = sums[own, _GRADIENT] / (sums[own, _HESSIAN] + _LEAST_SUPPORT)
        place = used
        while place > 0 and slopes[place - 1] >= slope:
            slopes[place], order[place] = slopes[place - 1], order[place - 1]
            place -= 1
        slopes[place], order[place] = slope, own
        used += 1
    return used


@inner
def _try_categories(sums: Any, whole: Any, bins: Any, loss: Any, limits: Any, order: Any) -> Any:
    """The best division of categories, put into an order, from either end to the middle. Gives the gain, from where to
    where in `order` the categories on the left stand, and what is summed on the left.
    """
    least, penalty, _ = limits
    used = _sorted_categories(sums, whole, bins, order)
    gain, first, last, best = -1.0, 0, -1, (0.0, 0.0, 0.0)
    if used < 2:
        return gain, first, last, best
    for backward in range(2):
        left = (0.0, 0.0, 0.0)
        for step in range((used + 1) // 2 - backward):
            place = used - 1 - step if backward else step
            left = _with(left, sums[order[place]])
            right = _rest(whole, left)
            if left[_COUNT] < least or left[_HESSIAN] < _LEAST_HESSIAN:
                continue
            if right[_COUNT] < least or right[_HESSIAN] < _LEAST_HESSIAN:
                break
            found = _gain(left, right, loss, penalty)
            if found > gain and found > 0.0:
                gain, best = found, left
                first, last = (place, used - 1) if backward else (0, place)
    return gain, first, last, best


@inner
def _best_split(sums: Any, whole: Any, value: Any, features: Any, limits: Any, left_bins: Any, order: Any) -> Any:
    """The best split of a node, of equal ones that by the first feature; bins that go left are put into `left_bins`.
    Gives the gain, the feature, and what is summed on the left.
    """
    begins, missing, nominal = features
    loss = whole[_GRADIENT] * value
    gain, chosen, best = -1.0, 0, (0.0, 0.0, 0.0)
    for feature in range(len(nominal)):
        own = sums[begins[feature] : begins[feature + 1]]
        count = len(own) - 1
        if nominal[feature]:
            bins = count + int(missing[feature])
            found, first, last, left = _try_categories(own, whole, bins, loss, limits, order)
            if found > gain:
                gain, chosen, best = found, feature, left
                left_bins[:] = False
                for place in range(first, last + 1):
                    left_bins[order[place]] = True
        else:
            found, cut, missing_left, left = _try_cuts(own, whole, count, missing[feature], loss, limits)
            if found > gain:
                gain, chosen, best = found, feature, left
                left_bins[:] = False
                left_bins[: cut + 1] = True
                left_bins[count] = missing_left
    return gain, chosen, best


@inner
def _divide(bins: Any, order: Any, begin: Any, end: Any, feature: Any, left_bins: Any, aside: Any) -> Any:
    """Put the examples of a node that go left before the others, each side in its order; gives where these begin. An
    example is written to both sides, and counted on one: nobody could guess where it goes.
    """
    left = begin
    right = 0
    for place in range(begin, end):
        example = order[place]
        goes = int(left_bins[np.uint64(bins[np.uint64(example), feature])])
        order[np.uint64(left)] = aside[np.uint64(right)] = example
        left += goes
        right += 1 - goes
    order[left:end] = aside[:right]
    return left


@inner
def _place_leaves(children: Any, ranks: Any) -> None:
    """Number leaves from left to right: a node's rank is the first leaf below it, in the second column the one after
    the last.
    """
    stack = np.empty(_NODES, np.int64)
    stack[0], depth, leaves = 0, 1, 0
    for node in range(len(children)):
        ranks[node, :] = -1
    while depth:
        node = stack[depth - 1]
        if ranks[node, 0] < 0:
            ranks[node, 0] = leaves
            if children[node] < 0:
                leaves += 1
            else:
                stack[depth], stack[depth + 1] = children[node] + 1, children[node]
                depth += 2
                continue
        ranks[node, 1] = leaves
        depth -= 1


@kernel
def grow_tree(
    bins: Any, slopes: Any, features: Any, limits: Any, step: Any, scratch: Any, left: Any, leaves: Any, totals: Any
) -> None:
    """Grow a tree of examples, and add to their totals what its leaves say.

    bins (example, feature), slopes (gradient or hessian, example); features: begins, whether each has missing values,
    whether it is nominal; limits: least examples of a leaf, penalty, most leaves; scratch: orders of examples
    (2, example), sums (leaf, bin, what is summed); left (bin,) and leaves (leaf,) are the tree, totals (example,).
    """
    begins, missing, _ = features
    least, penalty, most = limits
    (order, aside), sums = scratch
    examples = len(bins)
    spans, children = np.zeros((_NODES, 2), np.int64), np.full(_NODES, -1, np.int64)
    wholes, lefts = [(0.0, 0.0, 0.0)] * _NODES, [(0.0, 0.0, 0.0)] * _NODES
    values, gains = np.zeros(_NODES), np.full(_NODES, -1.0)
    chosen, slots = np.zeros(_NODES, np.int64), np.zeros(_NODES, np.int64)
    left_bins = np.zeros((_NODES, MOST_BINS), np.bool_)
    sorting = np.zeros(MOST_BINS, np.int64)

    order[:] = np.arange(examples)
    spans[0, 1] = examples
    _sum_bins(bins, order, 0, examples, begins, slopes, sums[0])
    count = begins[1] - begins[0] - 1
    wholes[0] = _sum_of_all(sums[0], _GRADIENT, count), _sum_of_all(sums[0], _HESSIAN, count), float(examples)
    if examples >= 2 * least and wholes[0][_HESSIAN] >= _LEAST_HESSIAN:
        gains[0], chosen[0], lefts[0] = _best_split(
            sums[0], wholes[0], values[0], features, limits, left_bins[0], sorting
        )
    nodes, slots_used = 1, 1
    while nodes < 2 * most - 1:
        node = int(np.argmax(gains[:nodes]))
        if gains[node] <= 0.0:
            break
        begin, end = spans[node]
        feature = chosen[node]
        middle = _divide(bins, order, begin, end, feature, left_bins[node], aside)
        if not missing[feature]:  # others that have none are like most
            left_bins[node, begins[feature + 1] - begins[feature] - 1] = middle - begin > end - middle
        children[node], gains[node] = nodes, -1.0
        wholes[nodes], wholes[nodes + 1] = lefts[node], _rest(wholes[node], lefts[node])
        spans[nodes, 0], spans[nodes, 1], spans[nodes + 1, 0], spans[nodes + 1, 1] = begin, middle, middle, end
        for child in range(nodes, nodes + 2):
            values[child] = _value(wholes[child][_GRADIENT], wholes[child][_HESSIAN], penalty)
        nodes += 2
        if nodes == 2 * most - 1 or max(middle - begin, end - middle) < 2 * least:
            continue
        smaller = nodes - 2 if middle - begin < end - middle else nodes - 1
        slots[smaller], slots[2 * nodes - 3 - smaller] = slots_used, slots[node]
        slots_used += 1
        own, parent = sums[slots[smaller]], sums[slots[node]]
        _sum_bins(bins, order, spans[smaller, 0], spans[smaller, 1], begins, slopes, own)
        parent -= own
        for child in range(nodes - 2, nodes):
            if spans[child, 1] - spans[child, 0] >= 2 * least:
                gains[child], chosen[child], lefts[child] = _best_split(
                    sums[slots[child]], wholes[child], values[child], features, limits, left_bins[child], sorting
                )

    ranks = np.empty((_NODES, 2), np.int64)
    _place_leaves(children[:nodes], ranks)
    left[:] = ALL_LEAVES
    leaves[:] = 0.0
    for node in range(nodes):
        if children[node] < 0:
            value = values[node] * step
            leaves[ranks[node, 0]] = value
            for place in range(spans[node, 0], spans[node, 1]):
                totals[order[place]] += value
            continue
        below = ranks[children[node]]
        kept = ~np.uint16((1 << below[1]) - (1 << below[0]))
        start = begins[chosen[node]]
        for own in range(begins[chosen[node] + 1] - start):
            if not left_bins[node, own]:
                left[start + own] &= kept


@kernel
def add_leaves(bins: Any, begins: Any, left: Any, leaves: Any, totals: Any) -> None:
    """Add to totals of examples what the leaves of a tree say."""
    for example in range(len(bins)):
        kept = left[begins[0] + bins[example, 0]]
        for feature in range(1, bins.shape[1]):
            kept &= left[begins[feature] + bins[example, feature]]
        leaf = 0
        while not kept >> leaf & 1:
            leaf += 1
        totals[example] += leaves[leaf]
