"""What `veracity list` says of a plug-in: what it does, and every setting in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from veracity.cli.listing import KINDS, _registry
from veracity.cli.main import app
from veracity.core.plugins import LARGEST_SEED, settings_of

PLUGINS = [(kind, name) for kind in KINDS for name in _registry(kind).names()]


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["list", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(("kind", "name"), PLUGINS)
def test_every_setting_is_described_in_a_line(kind: str, name: str) -> None:
    for setting in settings_of(_registry(kind).get(name)):
        assert setting.description, setting.name
        assert setting.description[-1] == ".", setting.name


def test_a_plugin_is_described() -> None:
    shown = listed("lime")
    assert shown.startswith("lime, one of explainers\n\nCoefficients of a ridge regression")
    (samples,) = (line for line in shown.splitlines() if line.startswith("samples"))
    assert samples.split()[:3] == ["samples", "int", "1000"]
    assert samples.rstrip().endswith(
        "Texts with words removed that the model is asked about, per text."
    )
    assert "profile=paper: kernel=paper" in shown
    assert "needs: probabilities" in shown
    # a bound of its own, and a choice by its words
    assert "int (up to 100,000)" in listed("integrated_gradients")
    assert "delete or pad or mask" in listed("occlusion")


def test_a_name_of_two_kinds_tells_of_both() -> None:
    shown = listed("dutrust")
    assert "dutrust, one of recipes" in shown
    assert "dutrust, one of formats" in shown
    assert "scales: smoke, laptop, paper" in shown


def test_a_program_reads_the_same() -> None:
    import json

    (found,) = json.loads(listed("made_reviews", "--json"))["plugins"]
    assert (found["kind"], found["name"]) == ("dataset", "made_reviews")
    by_name: dict[str, Any] = {one["name"]: one for one in found["settings"]}
    assert by_name["n"]["default"] == 2000
    assert by_name["seed"]["largest"] == LARGEST_SEED
    assert by_name["seed"]["description"] == "Makes every random choice repeatable."


def test_an_unknown_name_is_no_command() -> None:
    result = CliRunner().invoke(app, ["list", "limes"])
    assert result.exit_code == 2
    assert "No such command 'limes'" in result.output


def test_plugins_of_others_are_described(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    (tmp_path / "explainers").mkdir()
    (tmp_path / "explainers" / "first_word.py").write_text(
        "from dataclasses import dataclass\n"
        "from veracity.core.explainers import Explainer\n\n"
        "@dataclass(frozen=True)\n"
        "class FirstWord(Explainer):\n"
        '    """All on the first words."""\n\n'
        "    words: int = 1\n"
        '    """How many words\n    are first."""\n\n'
        "    def explain(self, model, inputs, targets, rngs):\n"
        "        return []\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "veracity", "list", "first_word"],
        env={**os.environ, "VERACITY_PLUGINS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "words    int   1        How many words are first." in done.stdout
