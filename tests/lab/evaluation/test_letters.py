"""Letters tell exactly who differs from whom, and none of them is one too many."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.lab.evaluation.letters import letters

Pairs = list[tuple[int, int]]
Case = tuple[list[float], Pairs]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    means = draw(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
    everything = list(itertools.combinations(range(len(means)), 2))
    different = draw(st.lists(st.sampled_from(everything), unique=True)) if everything else []
    return means, [pair[::-1] if draw(st.booleans()) else pair for pair in different]


def sharing(given: list[str]) -> set[tuple[int, int]]:
    pairs = itertools.combinations(range(len(given)), 2)
    return {(i, j) for i, j in pairs if set(given[i]) & set(given[j])}


@given(cases())
def test_letters_say_exactly_who_differs_and_follow_the_means(case: Case) -> None:
    means, different = case
    given = letters(means, different)
    significant = {(min(pair), max(pair)) for pair in different}
    assert sharing(given) == set(itertools.combinations(range(len(means)), 2)) - significant
    assert all(own and list(own) == sorted(set(own)) for own in given)
    assert letters(means, different[::-1] + different) == given, "the order of pairs is nothing"
    assert "a" in given[means.index(max(means))]
    used = sorted(set("".join(given)))
    assert used == list("abcdefghijklmnopqrstuvwxyz"[: len(used)])
    best = []
    for letter in used:
        rest = [own.replace(letter, "") for own in given]
        assert "" in rest or sharing(rest) != sharing(given), "no letter can be left out"
        best.append(max(m for m, own in zip(means, given, strict=True) if letter in own))
    assert best == sorted(best, reverse=True)


def test_known_displays() -> None:
    assert letters([2, 3, 1], [(1, 2)]) == ["ab", "a", "b"]
    assert letters([3, 2, 1], []) == ["a", "a", "a"]
    assert letters([1, 2, 3], [(0, 1), (0, 2), (1, 2)]) == ["c", "b", "a"]
    chain = [(i, j) for i, j in itertools.combinations(range(5), 2) if j - i > 1]
    assert letters([5, 4, 3, 2, 1], chain) == ["a", "ab", "bc", "cd", "d"]
    assert letters([0.5], []) == ["a"]
    assert letters([], []) == []


def test_more_than_twenty_six_letters() -> None:
    everything = list(itertools.combinations(range(29), 2))
    given = letters([-float(i) for i in range(29)], everything)
    assert given[0] == "a"
    assert given[25:] == ["z", "aa", "ab", "ac"]
    chain = letters([-float(i) for i in range(29)], [(i, j) for i, j in everything if j - i > 1])
    assert chain[25:] == ["y z", "z aa", "aa ab", "ab"]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=15), st.integers(0, 10))
def test_where_distance_decides_there_is_a_letter_for_each_run_of_neighbors(
    means: list[int], near: int
) -> None:
    pairs = itertools.combinations(range(len(means)), 2)
    given = letters(means, [(i, j) for i, j in pairs if abs(means[i] - means[j]) > near])
    runs = {frozenset(mean for mean in means if low <= mean <= low + near) for low in means}
    largest = [run for run in runs if not any(run < other for other in runs)]
    assert len(set("".join(given))) == len(largest)


@pytest.mark.slow
def test_many_rankers_take_no_time() -> None:
    """All largest sets without a differing pair would be 2³⁰."""
    partners = [(i, i + 1) for i in range(0, 60, 2)]
    started = time.perf_counter()
    given = [set(own.split()) for own in letters([float(i) for i in range(60)], partners)]
    assert time.perf_counter() - started < 5
    for i, j in itertools.combinations(range(60), 2):
        assert given[i].isdisjoint(given[j]) == ((i, j) in partners)
