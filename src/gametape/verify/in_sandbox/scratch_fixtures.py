"""The fixture `tmp_path` in split mode: its path says nothing about the test, since the code under test sees it."""

from __future__ import annotations

from pathlib import Path

import pytest


class ScratchFixtures:
    """A pytest plugin."""

    @pytest.fixture
    def tmp_path(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("scratch")
