from __future__ import annotations

from pathlib import Path

import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.ops import configuration
from ebrank.service.ops.configuration import declarations, effective, read
from ebrank.service.settings import Settings

DOCS = Path(__file__).parents[3] / "docs" / "service.md"
SECRET = "0123456789abcdef" * 4


def written(folder: Path, text: str) -> Path:
    path = folder / "serve.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_flags_override_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[ranking]\nk = 1\nwindow = 1.5\nseed = 2\n[server]\nport = 1\n")
    environment = {"EBRANK_SERVE_RANKING_K": "2", "EBRANK_SERVE_RANKING_WINDOW": "2.5"}
    chosen = read(path, environment=environment, flags={"ranking": {"k": 3}})
    assert (chosen.ranking.k, chosen.ranking.window, chosen.ranking.seed) == (3, 2.5, 2)
    assert chosen.server.port == 1
    assert read() == Settings()


def test_lists_and_none_from_the_environment() -> None:
    chosen = read(
        environment={
            "EBRANK_SERVE_EVENTS_OTHER": "buy, save",
            "EBRANK_SERVE_EXAMINATION_CURVE": "1,0.5",
            "EBRANK_SERVE_EXAMINATION_CUTOFF": "7",
            "EBRANK_SERVE_RANKING_EXPLORATION_BUDGET": "null",
            "EBRANK_SERVE_FEATURES_NAMES": "off",
            "PATH": "/bin",
        }
    )
    assert chosen.events.other == ("buy", "save")
    assert chosen.examination.curve == (1.0, 0.5)
    assert chosen.examination.cutoff == 7
    assert (chosen.ranking.exploration_budget, chosen.features.names) == (None, None)
    assert read(environment={"EBRANK_SERVE_EVENTS_OTHER": ""}).events.other == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ranking]\npolcy = 1\n", "there is no ranking.polcy. Did you mean policy?"),
        ("[ranking]\npolicy = 'ebrank:epsilonn=1'\n", "ranking.policy: ebrank has no parameter"),
        ("[events]\nbehaviors = ['click=2']\n", "events.behaviors: the weight of click must be"),
        ("[events]\nbehaviors = ['buy=much']\n", "events.behaviors: 'buy=much' has no weight"),
        ("[rankings]\nk = 1\n", "there is no section rankings. Did you mean ranking?"),
        ("k = 1\n", "there is no section k. Known: server, store"),
        ("ranking = 1\n", r"Write \[ranking\]"),
        ("[ranking]\nk = 0\n", "ranking.k: Expected `int` >= 1; it is 0. It means: length"),
        ('[ranking]\nk = "7"\n', "ranking.k: Expected `int`, got `str`"),
        ("[ranking]\nwindow = inf\n", "ranking.window: Expected a finite number"),
        ('[ranking]\nunknown = "dark"\n', "ranking.unknown: Invalid enum value 'dark'"),
        ("[examination]\ncurve = [2.0]\n", r"\[examination\]: curve must hold probabilities"),
        ("[examination]\ncurve = [1.0, 0.5, 1e-10]\n", r"\[examination\]: users examine rank \d+"),
        ("[features]\nnames = []\n", r"features\.names: Expected `array` of length >= 1"),
        *(
            (f"[limits]\nmemory = '{size}'\n", r"limits\.memory: .* is not a size; write it as in")
            for size in ("much", "-1 MB", "0", "5 TB", "")
        ),
        ("[token.web]\nscopes = []\n", r"no section token\. Did you mean tokens\?"),
        ("[ranking\n", "not valid TOML"),
        ("[tokens]\nweb = 3\n", "tokens.web: a token has sha256 and scopes. Run `ebrank serve"),
        (
            f'[tokens]\nweb = {{sha256 = "{SECRET}", scopes = ["all"]}}\n',
            "tokens.web: Invalid enum",
        ),
        (f'[tokens]\nweb = {{sha256 = "{SECRET}", scopes = []}}\n', "tokens.web: Expected"),
        ('[tokens]\nweb = {sha256 = "hush", scopes = ["rank"]}\n', "tokens.web: Expected"),
    ],
)
def test_mistakes_are_told_with_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SettingsError, match=f"^(?s:.*){told}") as problem:
        read(path)
    assert "hush" not in str(problem.value)
    as_a_whole = ("examination", "policy =", "behaviors", "memory")
    assert str(path) in str(problem.value) or any(word in text for word in as_a_whole)


def test_a_file_that_is_not_there_and_a_variable_that_means_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such file"):
        read(tmp_path / "none.toml")
    with pytest.raises(SettingsError, match=r"RANKING_KK: .*_RANKING_K\?"):
        read(environment={"EBRANK_SERVE_RANKING_KK": "1"})
    with pytest.raises(SettingsError, match="EBRANK_SERVE_RANKING_K: Expected `int`"):
        read(environment={"EBRANK_SERVE_RANKING_K": "many"})


def test_printed_settings_are_complete_and_hold_no_secret(tmp_path: Path) -> None:
    path = written(tmp_path, f'[tokens]\nweb = {{sha256 = "{SECRET}", scopes = ["rank"]}}\n')
    shown = effective(read(path))
    assert shown.pop("tokens") == {"web": ["rank"]}
    assert SECRET not in str(shown)
    assert read(flags=shown) == Settings()


def test_the_table_in_the_docs_is_that_of_the_declarations() -> None:
    assert all(setting.meaning for setting in declarations())
    assert configuration.table() in DOCS.read_text(encoding="utf-8")


def test_a_curve_may_end() -> None:
    chosen = read(flags={"examination": {"curve": [1.0, 1e-4, 0.0]}})
    assert chosen.examination.examination()(2) == 1e-4
    read(flags={"examination": {"severity": 15.0, "cutoff": 2}})


def test_off_is_for_what_may_have_no_value(tmp_path: Path) -> None:
    path = written(tmp_path, '[ranking]\nexploration_budget = "off"\n[features]\nnames = "off"\n')
    flags = {"ranking": {"exploration_budget": 0.5}}
    assert read(path) == Settings()
    assert read(path, flags=flags).ranking.exploration_budget == 0.5
    with pytest.raises(SettingsError, match=r"ranking.k: Expected `int`, got `str`"):
        read(written(tmp_path, '[ranking]\nk = "off"\n'))


@pytest.mark.parametrize(
    ("text", "size"),
    [("512 MB", 512 * 10**6), ("1.5GB", 1_500_000_000), ("2 GiB", 2**31), ("1000", 1000)],
)
def test_memory_is_a_size(text: str, size: int) -> None:
    assert read(flags={"limits": {"memory": text}}).limits.memory_bytes() == size
    environment = {"EBRANK_SERVE_LIMITS_MEMORY": text}
    assert read(environment=environment).limits.memory_bytes() == size
    assert read(flags={"limits": {"memory": size}}).limits.memory_bytes() == size
