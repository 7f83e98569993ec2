"""samples - what the samples of a case say: medians, and ratios of the same rounds with intervals.

A sample is {"round": n, "seconds": s, "dirty": bool, ...}. Dirty samples, in which others used the processor, count
nowhere; the results tell how many there were."""
import random
import statistics

DRAWS = 1000
LEAST_FOR_INTERVAL = 3


def clean(samples):
    return [each for each in samples if not each["dirty"]]


def median(samples, what="seconds"):
    """Of the clean samples that tell it; None: there are none."""
    found = [each[what] for each in clean(samples) if each[what] is not None]
    return statistics.median(found) if found else None


def interval(values):
    """Where the median is with 90 % (bootstrap, from a fixed seed); least and largest of few values."""
    if len(values) < LEAST_FOR_INTERVAL:
        return min(values), max(values)
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return medians[DRAWS * 5 // 100], medians[DRAWS * 95 // 100 - 1]


def ratio(over, under, what="seconds"):
    """(median, low, high) of the ratios of rounds where both are clean; None: there is no such round."""
    below = {each["round"]: each[what] for each in clean(under)}
    values = [each[what] / below[each["round"]] for each in clean(over) if below.get(each["round"])]
    return (statistics.median(values), *interval(values)) if values else None


def n_dirty(samples_by_case):
    """How many samples of a case were dropped."""
    return sum(len(samples) - len(clean(samples)) for samples in samples_by_case.values())


def line(points):
    """(a, b) of the least squares fit y = a + b x."""
    xs, ys = zip(*points)
    mean_x, mean_y = statistics.mean(xs), statistics.mean(ys)
    below = sum((x - mean_x) ** 2 for x in xs)
    b = sum((x - mean_x) * (y - mean_y) for x, y in points) / below
    return mean_y - b * mean_x, b
