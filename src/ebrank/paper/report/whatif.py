"""A forecast for people: a table, two figures, and a page with both and what they mean."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ebrank.addons.whatif.forecast import LEVEL, Forecast, Interval, interval
from ebrank.environment.files import write_whole
from ebrank.paper.framework.display import Column, Figure, Panel, Row, Series, Table
from ebrank.paper.report.figures import svg
from ebrank.paper.report.page import environment
from ebrank.paper.report.tables import TABLE_FILES
from ebrank.typing import Floats

PAGE = "whatif.html"
NEVER = "not in this time"


def table(forecast: Forecast) -> Table:
    """Return the measures, with a column for each policy."""
    reference, which = forecast.reference, range(len(forecast.policies))
    steps = forecast.value.shape[2]
    than = f"more than {forecast.policies[reference]}"
    lines: dict[str, list[str]] = {
        f"{forecast.outcome} per list": _row(forecast.per_list),
        than: _row(forecast.difference, digits=3, signed=True),
        f"{than}, first {100 / steps:g} % of lists": _row(
            forecast.ahead[:, :, 0], digits=3, signed=True
        ),
        f"{forecast.outcome} lost on the way": _row(forecast.cost, digits=3),
        "made up for after lists": [payback(forecast, at) for at in which],
        f"{forecast.outcome} per list, new items": _row(forecast.new),
        "good new items shown, %": _row(100.0 * forecast.found, digits=3),
        "half of them after lists": _row(forecast.wait, digits=3),
    }
    for name in list(lines)[1:5]:
        lines[name][reference] = "–"
    caption = (
        f"Means over {len(forecast.value)} worlds that the log leaves possible, with "
        f"{100 * LEVEL:g} % intervals; differences are paired within worlds. A good new item is "
        f"one that nobody had seen, among the best {forecast.length} of its query; its lists count "
        "from its arrival."
    )
    columns = (Column("measure"), *map(Column, forecast.policies))
    rows = tuple(Row((name, *texts)) for name, texts in lines.items())
    return Table("whatif", title(forecast), caption, columns, rows)


def _row(values: Floats, *, digits: int = 4, signed: bool = False) -> list[str]:
    return [_text(interval(column), digits=digits, signed=signed) for column in values.T]


def title(forecast: Forecast) -> str:
    """Return what was asked, in words."""
    when = "from today on" if forecast.begin == "today" else "from the start of the log"
    days = "" if forecast.days is None else f", about {forecast.days:,.3g} days"
    return f"{forecast.lists:,} lists {when}{days}"


def payback(forecast: Forecast, at: int) -> str:
    """Return when a policy has made up for what it lost to the reference, in lists."""
    return _text(interval(forecast.paid_back[:, at]), digits=6)


def sentences(forecast: Forecast) -> list[str]:
    """Return the answer: which policy, by how much, and at what cost."""
    best, reference = forecast.best, forecast.reference
    names, per_list, ahead = forecast.policies, forecast.per_list, forecast.difference
    if best == reference:
        others = [at for at in range(len(names)) if at != reference]
        second = max(others, key=lambda at: per_list[:, at].mean(), default=None)
        said = [f"No policy is expected to do better than {names[reference]}."]
        if second is not None:
            gap = interval(ahead[:, second])
            said.append(
                f"{names[second]} comes next: {_text(gap, digits=3, signed=True)} per list."
            )
        return said
    gap = interval(ahead[:, best])
    share = gap.mean / per_list[:, reference].mean()
    sure = float((ahead[:, best] > 0.0).mean())
    said = [
        f"{names[best]} is expected to do best: {_text(gap, digits=3, signed=True)} "
        f"{forecast.outcome} per list over {names[reference]} ({100 * share:+.1f} %); it is ahead "
        f"in {100 * sure:.0f} % of the worlds."
    ]
    cost = interval(forecast.cost[:, best])
    if cost.mean < 0.5:
        said.append("It costs nothing to speak of on the way.")
    else:
        said.append(
            f"On the way it falls behind by up to {cost.mean:,.0f} {forecast.outcome} in total "
            f"[{cost.low:,.0f}, {cost.high:,.0f}], and has made up for that after "
            f"{payback(forecast, best)} lists."
        )
    return said


def figure(forecast: Forecast) -> Figure:
    """Return the outcome over time, and what each policy has gained by then."""
    steps = forecast.value.shape[2]
    x = tuple((np.arange(1, steps + 1) * forecast.lists / steps).tolist())
    levels = tuple(
        _series(policy, x, forecast.value[:, at]) for at, policy in enumerate(forecast.policies)
    )
    gained = tuple(
        _series(policy, x, forecast.gained[:, at])
        for at, policy in enumerate(forecast.policies)
        if at != forecast.reference
    )
    reference = forecast.policies[forecast.reference]
    panels = [Panel("Per list", "lists", f"{forecast.outcome} per list", levels)]
    if gained:
        what = f"{forecast.outcome} gained"
        panels.append(Panel(f"Gained over {reference}", "lists", what, gained))
    caption = f"Means over worlds; bands hold about {100 * LEVEL:g} % of the worlds."
    return Figure("whatif", "Expected outcome of each policy", caption, tuple(panels))


def _series(label: str, x: tuple[float, ...], values: Floats) -> Series:
    ends = [interval(values[:, step]) for step in range(values.shape[1])]
    half = tuple((each.high - each.low) / 2.0 for each in ends)
    return Series(label, label, x, tuple(each.mean for each in ends), half)


def _text(values: Interval, *, digits: int = 4, signed: bool = False) -> str:
    """Return an interval: `0.5321 [0.51, 0.55]`.

    >>> _text(Interval(0.53211, 0.51, 0.552)), _text(Interval(-0.5, -1.0, 0.25), signed=True)
    ('0.5321 [0.51, 0.552]', '−0.5 [−1, +0.25]')
    """
    if math.isnan(values.mean):
        return "–"
    if math.isinf(values.low):
        return NEVER
    form = f"{'+' if signed else ''}.{digits}g"
    mean, low, high = (
        format(value, form).replace("-", "−") if math.isfinite(value) else NEVER for value in values
    )
    return f"{mean} [{low}, {high}]"


def write(forecast: Forecast, folder: Path) -> Path:
    """Write the page, its table and its figure into a folder; return the page."""
    shown, drawn = table(forecast), figure(forecast)
    picture = svg(drawn)
    template = environment().get_template(PAGE)
    page = template.render(
        forecast=forecast,
        title=title(forecast),
        sentences=sentences(forecast),
        shown=shown,
        drawn=drawn,
        picture=picture,
    )
    files = {f"whatif.{form}": make(shown).encode() for form, make in TABLE_FILES.items()}
    files |= {"whatif.svg": picture, PAGE: page.encode()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)
    return folder / PAGE
