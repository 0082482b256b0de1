"""What operators install: it parses, and names only metrics, options and settings that exist."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ebrank.cli.serve import serve
from ebrank.service.ops.configuration import declarations
from tests.in_process import in_process

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
METRIC = re.compile(r"\b(?:ebrank|process)_[a-z_]+\b(?=[\[{ )/,]|$)")


@pytest.fixture(scope="module")
def exported() -> set[str]:
    with in_process() as local:
        local.request("GET", "/healthz")
        page = local.request("GET", "/metrics").text
    names = set()
    for family in text_string_to_metric_families(page):
        endings = {
            "counter": ("_total",),
            "histogram": ("_bucket", "_sum", "_count"),
        }.get(family.type, ("",))
        names |= {family.name + ending for ending in endings}
    return names


def expressions(node: Any) -> Iterator[str]:  # noqa: ANN401 (JSON or YAML)
    """Yield every query of a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def documents() -> dict[str, Any]:
    return {
        "alerts.yml": yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8")),
        "grafana.json": json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8")),
    }


@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_every_metric_is_exported(name: str, exported: set[str]) -> None:
    found = {one for text in expressions(documents()[name]) for one in METRIC.findall(text)}
    assert len(found) >= 8
    assert found <= exported, f"{name} names what is not exported: {found - exported}"


def test_every_metric_of_ours_is_on_the_dashboard(exported: set[str]) -> None:
    shown = "\n".join(expressions(documents()["grafana.json"]))
    ours = {re.sub("_(bucket|sum|count)$", "", one) for one in exported if one[:7] == "ebrank_"}
    missing = {one for one in ours if one not in shown} - {
        "ebrank_slots_total",  # lists say enough
    }
    assert not missing


def test_every_metric_of_ours_is_documented(exported: set[str]) -> None:
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `ebrank_")]
    documented = {name for row in rows for name in re.findall(r"`(ebrank_\w+)", row.split("|")[1])}
    ours = {re.sub("_(bucket|sum|count)$", "", one) for one in exported if one[:7] == "ebrank_"}
    assert documented == ours


def test_alerts_and_panels_are_complete() -> None:
    rules = documents()["alerts.yml"]["groups"][0]["rules"]
    assert all({"alert", "expr", "labels", "annotations"} <= set(rule) for rule in rules)
    assert len({rule["alert"] for rule in rules}) == len(rules)
    panels = documents()["grafana.json"]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)


def test_the_unit_and_the_image_call_what_there_is() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "ebrank.service")
    service = unit["Service"]
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    image = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    options = {flag for one in serve.params for flag in one.opts}
    text = service["ExecStart"] + service["ExecStartPre"] + image.split("ENTRYPOINT")[1]
    assert set(re.findall(r"--[a-z-]+", text)) <= options
    variables = {one.variable for one in declarations()}
    used = set(re.findall(r"EBRANK_SERVE_\w+", image))
    assert used
    assert used <= variables


def test_there_is_advice_about_every_setting() -> None:
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    advice = page.split("| setting | change it when |")[1]
    advised = set(re.findall(r"`([a-z]+\.[a-z_]+)`", advice))
    known = {one.name for one in declarations()}
    assert known <= advised, f"docs/running.md: say when to change {known - advised}"
    assert advised <= known, f"docs/running.md: there is no {advised - known}"
