"""Can a test of significance decide at all? A small run can show little, whatever is true.

The test is over test queries, so that few of them leave even large differences undecided; few
trials leave each query's figure to luck. A run is called small below the protocol's five trials, or
below 100 test queries: the smallest test set that is held against published figures, that of
MQ2008, has 105.

>>> print(caution(6, 1))
6 test queries, 1 trial: too few for significance tests to decide. A claim that does not hold here \
may hold in a run with at least 100 test queries and 5 trials.
>>> caution(105, 5)
''
"""

from __future__ import annotations

from ebrank.experiments.words import counted

ENOUGH_QUERIES = 100
ENOUGH_TRIALS = 5


def caution(test_queries: int | None, trials: int) -> str:
    """Return what to know before believing the findings of a small run; "" of a large one.

    Results that were written before test queries were counted have None of them.
    """
    few_queries = test_queries is not None and test_queries < ENOUGH_QUERIES
    if not few_queries and trials >= ENOUGH_TRIALS:
        return ""
    size = [counted(trials, "trial")]
    if test_queries is not None:
        size.insert(0, counted(test_queries, "test query", "test queries"))
    return (
        f"{', '.join(size)}: too few for significance tests to decide. A claim that does not hold "
        f"here may hold in a run with at least {ENOUGH_QUERIES} test queries and {ENOUGH_TRIALS} "
        "trials."
    )
