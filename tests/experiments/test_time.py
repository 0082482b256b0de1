from __future__ import annotations

import numpy as np

from ebrank.experiments.lineup import FIGURES
from ebrank.experiments.runner import Report


def test_every_ranker_has_a_line_in_each_panel_through_its_means(report: Report) -> None:
    (figure,) = report.outcomes["time"].figures
    assert [panel.title for panel in figure.panels] == ["Cold-NDCG", "Warm-NDCG", "Cum-NDCG"]
    for panel in figure.panels:
        assert [line.style for line in panel.series] == [one.style for one in FIGURES]
        assert all(line.x == (100.0, 200.0, 300.0, 400.0) for line in panel.series)
    trials = report.results[report.setup.run("ebrank")].trials
    (line,) = [line for line in figure.panels[1].series if line.style == "ebrank"]
    warm = np.array([trial.warm_ndcg[:, 0] for trial in trials])
    assert line.y == tuple(warm.mean(axis=0))
    assert line.error == tuple(warm.std(axis=0, ddof=1))
