"""The ledger: every figure of every entry, remarks by letter, nothing that was not computed."""

from __future__ import annotations

from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.ledger.entries import LedgerEntry, LedgerSection
from ebrank.report.ledger import ledger_markdown, ledger_table, remarks
from ebrank.report.tables.markdown import escaped
from tests.report.sample import LEDGER, NASTY, document

TABLE2 = LEDGER[1]


def test_a_row_for_each_ranker_with_all_its_figures() -> None:
    table = ledger_table(TABLE2)
    assert [column.group for column in table.columns] == ["", *["Warm"] * 3, *["Cum"] * 3]
    ebrank, nasty = (row.cells for row in table.rows)
    assert ebrank[0] == "EBRank"
    assert ebrank[1:4] == (Cell(0.849), Cell(0.852, sd=0.004), Cell(0.852 - 0.849, signed=True))
    assert ebrank[6] == Cell(100.0 - 171.3, digits=1, marks="a", signed=True)
    assert nasty[1:4] == (Cell(0.5), Cell(None), Cell(None, marks="b", signed=True))
    assert nasty[4:] == (Cell(None),) * 3, "it has no such figure"


def test_their_deviations_stand_beside_their_figures() -> None:
    entries = tuple(LedgerEntry(name, "x^b", 0.5, 0.4, reference_sd=0.1) for name in "ab")
    assert ledger_table(LedgerSection("", entries=entries)).rows[0].cells[1] == Cell(0.5, sd=0.1)


def test_a_remark_stands_once() -> None:
    assert remarks(TABLE2) == {"odd": "a", "not run": "b"}
    same = tuple(LedgerEntry(str(number), "Warm", 1.0, 2.0, remark="odd") for number in range(30))
    assert remarks(LedgerSection("", entries=same)) == {"odd": "a"}


def test_one_name_has_its_figures_below_each_other() -> None:
    table = ledger_table(LEDGER[2])
    assert [column.title for column in table.columns] == [
        "figure",
        *["reference", "ours", "difference"],
    ]
    assert table.rows[0].cells[0] == "queries"


def test_the_file_tells_all() -> None:
    text = ledger_markdown(document())
    lines = text.split("\n")
    assert "### Table 2" in lines
    assert "- a: odd" in lines
    assert "- b: not run" in lines
    assert any(line.startswith("| EBRank | .849 | .852 ± .004 | +.003 |") for line in lines)
    assert "−71.3<sup>a</sup>" in text
    assert "## Not at hand" in lines
    assert "2 trials, seed 1" in text
    assert "1 trial, seed 1" in ledger_markdown(document(trials=1))


def test_findings_stand_under_their_themes() -> None:
    lines = ledger_markdown(document()).split("\n")
    assert any(line.startswith("**1 confirmed, 1 undecided, 1 contradicted.**") for line in lines)
    start = lines.index("| **Someone is first: 1 confirmed, 1 undecided** | | | | |")
    assert lines[start + 1 : start + 3] == [
        r"| EBRank is first | ✓ confirmed | +.100 \[+.050, +.150\] | Warm-NDCG | p = .01 |",
        rf"| UCBRank is first | ○ undecided | −.100 \[−.250, +.050\] | {escaped(NASTY)} | p = .3 |",
    ]
    assert lines[start + 3] == f"| **{escaped(NASTY)}: 1 contradicted** | | | | |"
    assert "| ✗ contradicted | – | |" in lines[start + 4]


def test_names_are_no_markup() -> None:
    text = ledger_markdown(document(command="ebrank reproduce", missing=()))
    assert NASTY not in text
    assert "<script>" not in text
