from __future__ import annotations

import pytest

from ebrank.environment.extras import import_extra
from ebrank.errors import MissingExtraError


def test_an_installed_module_is_returned() -> None:
    assert import_extra("json.decoder", extra="report", purpose="to read").JSONDecoder


def test_the_error_names_the_command_that_installs_a_missing_module() -> None:
    with pytest.raises(MissingExtraError, match=r"needed to draw .*pip install 'ebrank\[report\]'"):
        import_extra("no_such_library.pyplot", extra="report", purpose="to draw")


def test_a_broken_module_is_not_reported_as_missing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "broken_library.py").write_text("import another_absent_library\n")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(ModuleNotFoundError, match="another_absent_library"):
        import_extra("broken_library", extra="report", purpose="to draw")
