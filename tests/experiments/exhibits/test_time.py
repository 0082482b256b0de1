from __future__ import annotations

import numpy as np

from ebrank.experiments.exhibits.time import OTHERS
from ebrank.experiments.framework.entrants import ENTRANTS, FIGURES
from ebrank.experiments.framework.runner import FinishedDataset


def test_every_ranker_has_a_line_in_each_panel_through_its_means(finished: FinishedDataset) -> None:
    figure, _ = finished.outcomes["time"].figures
    assert [panel.title for panel in figure.panels] == [
        "Cold-NDCG",
        "Warm-NDCG",
        "Cum-NDCG",
        "Run-NDCG",
    ]
    for panel in figure.panels:
        assert [line.style for line in panel.series] == [one.style for one in FIGURES]
        assert all(line.x == (100.0, 200.0, 300.0, 400.0) for line in panel.series)
    trials = finished.results[finished.setup.run("ebrank")].trials
    (line,) = [line for line in figure.panels[1].series if line.style == "ebrank"]
    warm = np.array([trial.warm_ndcg[:, 0] for trial in trials])
    assert line.y == tuple(warm.mean(axis=0))
    assert line.error == tuple(warm.std(axis=0, ddof=1))


def test_nobody_is_left_out(finished: FinishedDataset) -> None:
    first, second = finished.outcomes["time"].figures
    assert (first.name, second.name) == ("time", "time-others")
    (without, *_) = second.panels
    assert [line.label for line in without.series] == [one.label for one in OTHERS]
    assert {*FIGURES, *OTHERS} == set(ENTRANTS)
    assert [one.key for one in FIGURES if one in OTHERS] == ["bm25"]
    trials = finished.results[finished.setup.run("oracle")].trials
    assert without.series[-1].y[-1] == np.mean([trial.cold_ndcg[-1, 0] for trial in trials])
