"""Results on the README and at the top of docs/results are those of the results' own files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
RESULTS = PROJECT / "docs" / "results"
MQ2007 = RESULTS / "mq2007-like"
PAGES = {
    "README": (PROJECT / "README.md").read_text(encoding="utf-8"),
    "results": (RESULTS / "README.md").read_text(encoding="utf-8"),
}
NUMBER = re.compile(r"\d*\.\d+|\d+")
Rows = dict[tuple[str, str], list[str]]


def rows(text: str) -> Rows:
    """Return a table's cells by group and name, without marks; ± and what follows is left out."""
    found, group = {}, ""
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|--"):
            name, *cells = (
                re.sub(r"[*\\†]|<sup>.*| ±.*", "", cell).strip() for cell in _cells(line)
            )
            group = group if any(cells) else name
            found[group, name] = cells
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def of_files(name: str) -> Rows:
    return rows((MQ2007 / "tables" / f"{name}.md").read_text(encoding="utf-8"))


def published() -> Rows:
    ledger = (MQ2007 / "LEDGER.md").read_text(encoding="utf-8")
    return rows(ledger.partition("### Table 2")[2].partition("\n### ")[0])


WITHOUT, CONCATE, OTHERS = "W/o-Behav", "W/-Behav (Concate)", "W/-Behav (non-Concate)"
NAMES = {
    "BM25": (WITHOUT, "BM25"),
    "CFTopK, clicks not a feature": (WITHOUT, "CFTopK"),
    "CFTopK, clicks as a feature": (CONCATE, "CFTopK"),
    "PDGD, clicks as a feature": (CONCATE, "PDGD"),
    "PRIOR": (CONCATE, "PRIOR"),
    "features only (CFTopK)": (WITHOUT, "CFTopK"),
    "clicks as a feature (CFTopK)": (CONCATE, "CFTopK"),
    **{f"{name}, tuned": (OTHERS, name) for name in ("UCBRank", "EBRank (paper)")},
    "EBRank (exposure), tuned": (OTHERS, "EBRank (exposure)"),
    "EBRank auto, nothing to tune": (OTHERS, "EBRank auto"),
}
"""The pages' rows, as the tables of results call them."""


def shown(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of a page's table whose header begins like this, by name."""
    table = PAGES[page][PAGES[page].index(heading) :].partition("\n\n")[0]
    return {name: cells for (_, name), cells in list(rows(table).items())[1:]}


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    ours, paper = of_files("table2"), published()
    written = shown("README", "| ranker | cold")
    assert len(written) == 9
    for name, cells in written.items():
        key = NAMES[name]
        assert cells[:4] == ours[key][:4], name
        theirs = paper[key][::3] if key in paper else ["", "", ""]
        assert cells[4:] == theirs, name


def test_the_results_open_with_figures_of_their_tables() -> None:
    ours, waits = of_files("table2"), of_files("waiting")
    written = shown("results", "| ranked by")
    assert len(written) == 5
    for name, (soon, *cells) in written.items():
        cold, warm, _, run, *_ = ours[NAMES[name]]
        assert cells == [run, warm, cold], name
        assert soon == f"{100 * float(waits[NAMES[name]][2]):.0f} %", name
    first_screen = PAGES["results"].partition("\n## ")[0]
    better = dict.fromkeys(re.findall(r"(\d+) % worse", first_screen))
    ucbrank, auto = (float(ours[OTHERS, who][3]) for who in ("UCBRank", "EBRank auto"))
    assert list(better) == [f"{100 * (1 - ucbrank / auto):.0f}"]
    assert f"a random order has {ours['for comparison', 'Random'][3]}" in first_screen
    assert f"shows {100 * float(waits['for comparison', 'Oracle'][2]):.0f} %" in first_screen


def test_verdicts_on_the_papers_claims_are_those_of_the_ledgers() -> None:
    table = PAGES["results"].partition("## The paper's claims")[2].partition("\n## ")[0]
    written = re.findall(
        r"\((\S+/LEDGER\.md)\).*\| (\d+) \| (\d+) \| (\d+) \|$", table, re.MULTILINE
    )
    assert len(written) == 4
    for ledger, *counts in written:
        text = (RESULTS / ledger).read_text(encoding="utf-8")
        verdicts = zip(counts, ("confirmed", "undecided", "contradicted"), strict=True)
        assert f"**{', '.join(f'{count} {verdict}' for count, verdict in verdicts)}.**" in text


@pytest.mark.parametrize("columns", [("rare queries", 1), ("first lists", 3), ("new items", 4)])
def test_shares_of_shared_items_are_those_of_the_results(columns: tuple[str, int]) -> None:
    title, place = columns
    files = of_files("beyond-shared")
    page = PAGES["results"]
    table = page[page.index("| clicks | τ |") :].partition("\n\n")[0].splitlines()
    header, clicks = _cells(table[0]), ""
    assert len(table) == 2 + 6
    for line in table[2:]:
        cells = _cells(line)
        clicks = cells[0] or clicks
        group = next(
            group
            for group, _ in files
            if group.startswith(f"clicks {clicks} ") and group.endswith(f"τ = {cells[1]}")
        )
        who = ("each query alone", "EBRank auto", "item effect known")
        assert NUMBER.findall(cells[header.index(title)]) == [
            files[group, each][place] for each in who
        ]
        assert cells[-1] == files[group, "click rate as a feature"][4]


def test_every_result_in_the_text_above_is_in_a_file() -> None:
    """The rest of the README's section and of the first screen mentions no other NDCG."""
    tables = "\n".join(path.read_text(encoding="utf-8") for path in MQ2007.rglob("*.md"))
    known = set(NUMBER.findall(tables))
    lab = PAGES["README"].partition("## In the lab")[2].partition("\n## ")[0]
    for text in (lab, PAGES["results"].partition("\n## ")[0]):
        assert set(re.findall(r"(?<![\d.])\.\d{3}\b|\b\d{2,3}\.\d\b", text)) <= known
