"""Of many points the ones that validation picks, and the error that they give at every cost."""

import numpy as np


def curve(points):
    """The test curve of the points that validation picks: a straight line between neighbours, level beyond the ends."""
    chosen = sorted(hull(points), key=lambda point: point[2])
    costs, errors = [point[2] for point in chosen], [point[3] for point in chosen]
    grid = np.linspace(0.01, 0.5, 491)
    return {"area": float(np.interp(grid, costs, errors).mean()), "errors": np.interp([0.1, 0.25, 0.5], costs, errors), "hull": chosen}


def hull(points):
    """The lower convex hull on validation, from the cheapest point down to the lowest error."""
    kept = []
    for point in sorted(points):
        if kept and point[1] >= kept[-1][1]:
            continue
        while len(kept) > 1 and above(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def above(left, middle, right):
    """Is the middle point on or above the line between the others?"""
    return (middle[1] - left[1]) * (right[0] - left[0]) >= (right[1] - left[1]) * (middle[0] - left[0])
