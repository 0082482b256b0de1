"""The text format of Prometheus, read back by a small reader of its grammar."""

from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.metrics import Counter, Gauge, Histogram, process_metrics, text

SAMPLE = re.compile(r'^([a-z_]+)(?:{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)})? (\S+)\Z')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')


def samples(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return the values of a page by name and labels; fails on what Prometheus could not read."""
    assert page.endswith("\n")
    found = {}
    for line in page.removesuffix("\n").split("\n"):
        if line.startswith("#"):
            assert re.match(r"# (HELP|TYPE) [a-z_]+ \S", line)
            continue
        match = SAMPLE.match(line)
        assert match is not None, line
        name, labels, value = match.groups()
        pairs = tuple((key, unescaped(text)) for key, text in LABEL.findall(labels or ""))
        assert (name, pairs) not in found
        found[name, pairs] = float(value.replace("Inf", "inf"))
    return found


def unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), value)


def test_a_counter_adds_up_by_label() -> None:
    counter = Counter("hits_total", "Hits.", "route", "status")
    counter.add(1, "/a", "200")
    counter.add(2, "/a", "200")
    counter.add(1, "/a", "404")
    found = samples(text([counter]))
    assert found["hits_total", (("route", "/a"), ("status", "200"))] == 3
    assert found["hits_total", (("route", "/a"), ("status", "404"))] == 1


def test_a_counter_without_labels_starts_at_zero() -> None:
    assert samples(text([Counter("hits_total", "Hits.")])) == {("hits_total", ()): 0}


def test_a_gauge_is_looked_up_when_asked() -> None:
    values = iter([1.0, 2.5, math.inf])
    gauge = Gauge("level", "Level.", lambda: next(values))
    assert [samples(text([gauge]))["level", ()] for _ in range(3)] == [1.0, 2.5, math.inf]


@given(st.lists(st.floats(0, 10), max_size=50))
def test_a_histogram_counts_at_most(values: list[float]) -> None:
    bounds = (0.5, 1.0, 5.0)
    histogram = Histogram("seconds", "Time.", "route", bounds=bounds)
    for value in values:
        histogram.observe(value, "/a")
    found = samples(text([histogram]))
    if not values:
        assert found == {}
        return
    route = ("route", "/a")
    for bound in (*bounds, math.inf):
        label = "+Inf" if bound == math.inf else f"{bound:g}"
        count = sum(value <= bound for value in values)
        assert found["seconds_bucket", (route, ("le", label))] == count
    assert found["seconds_count", (route,)] == len(values)
    assert math.isclose(found["seconds_sum", (route,)], math.fsum(values), abs_tol=1e-9)


@given(st.text(max_size=20))
def test_any_label_survives(value: str) -> None:
    counter = Counter("hits_total", "Hits.", "who")
    counter.add(1, value)
    assert ("hits_total", (("who", value),)) in samples(text([counter]))


def test_a_line_break_in_a_label_stays_on_its_line() -> None:
    counter = Counter("hits_total", "Hits.", "who")
    counter.add(1, 'a\n"b"\\')
    assert ("hits_total", (("who", 'a\n"b"\\'),)) in samples(text([counter]))


def test_the_process_is_measured() -> None:
    found = samples(text(process_metrics()))
    assert found["process_resident_memory_bytes", ()] > 1e6
    assert found["process_cpu_seconds_total", ()] > 0
