"""Every command of the documentation is one that exists, with options that exist and values that are allowed."""

from __future__ import annotations

import argparse
import importlib
import shlex
from pathlib import Path

import pytest
import yaml

from phasegate.cli import COMMANDS
from phasegate.pytest_plugin.options import OPTIONS
from tests.docs.blocks import ROOT, Block, blocks, commands

SHELLS = ("sh", "bash", "shell", "console")

PYTESTS_OWN = {"-q", "-v", "-x", "-m", "-k", "-n", "-p", "--junitxml", "--benchmark-json", "--benchmark-histogram"}

KNOWN = {
    "make", "pip", "python", "python3", ".", "cd", "export", "git", "phasegate", "pytest", "pytest-benchmark", "mkdir",
    "llama-server", "vllm", "docker", "source", "uvx", "for", "done", "do", "rm", "cp", "open", "cat", "env", "bash",
    "transformers", "ray", "curl", "npx",
}  # fmt: skip
"""Words that a documented command may begin with."""


def shell_commands() -> list[tuple[Block, str]]:
    found = [(block, line) for block in blocks() if block.language in SHELLS for line in commands(block)]
    assert len(found) > 10, "the reader of blocks no longer finds them"
    return found


def words_of(line: str) -> list[str]:
    """The words of a simple command, comment and surroundings cut off."""
    words = shlex.split(line, comments=True)
    for end in ("&&", "|", ">", "<", ";", "&"):
        words = words[: words.index(end)] if end in words else words
    while words and "=" in words[0] and not words[0].startswith("-"):
        words = words[1:]
    return words


ALL = shell_commands()


@pytest.mark.parametrize(
    ("block", "line"), ALL, ids=[f"{block.where}-{number}" for number, (block, _) in enumerate(ALL)]
)
def test_a_documented_command_exists(block: Block, line: str) -> None:
    for part in line.split("&&"):
        words = words_of(part)
        if not words:
            continue
        name = Path(words[0]).name
        assert name in KNOWN or words[0].startswith("."), f"{block.where}: {line}"
        if name == "pytest" or words[:3] == ["python", "-m", "pytest"]:
            check_pytest(block, words)
        elif name == "phasegate":
            check_phasegate(block, words[1:])
        elif name in ("python", "python3") and words[1:2] == ["-m"]:
            check_module(block, words[2])
        elif name == "make":
            check_make(block, words[1:])


def check_pytest(block: Block, words: list[str]) -> None:
    known = {name: extra for names, _, extra in OPTIONS for name in names}
    for place, word in enumerate(words):
        if not word.startswith("--"):
            continue
        option, _, value = word.partition("=")
        assert option in known or option in PYTESTS_OWN, f"{block.where}: pytest has no option {option}"
        choices = known.get(option, {}).get("choices")
        if choices:
            given = value or words[place + 1]
            assert given in choices or given.startswith("$"), f"{block.where}: {option} {given}"


def check_phasegate(block: Block, words: list[str]) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    subparsers = parser.add_subparsers(dest="command")
    for module, _ in COMMANDS.values():
        importlib.import_module(module).add_parser(subparsers)
    try:
        parser.parse_args(words)
    except SystemExit as error:  # argparse said what is wrong; asking for help ends with 0
        if error.code:
            pytest.fail(f"{block.where}: phasegate {shlex.join(words)}")


def check_module(block: Block, module: str) -> None:
    if module.split(".")[0] in ("benchmarks", "phasegate", "tests"):
        path = ROOT / Path(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), f"{block.where}: {module}"


def check_make(block: Block, words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in words:
        if "=" not in word:
            assert f"\n{word}:" in makefile, f"{block.where}: make {word}"


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.where)
def test_a_documented_yaml_block_is_yaml(block: Block) -> None:
    assert yaml.safe_load(block.text) is not None


@pytest.mark.parametrize("block", blocks("json"), ids=lambda block: block.where)
def test_a_documented_json_block_is_json(block: Block) -> None:
    import json

    assert json.loads(block.text) is not None


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.where)
def test_a_documented_python_block_compiles_and_its_imports_exist(block: Block) -> None:
    """What it does is tested where it is described; that its names exist is tested here."""
    import ast

    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("phasegate"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                assert hasattr(module, alias.name), f"{block.where}: {node.module} has no {alias.name}"


def test_every_option_is_documented() -> None:
    """In the README's table or in a page of the reference."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    missing = [name for names, _, _ in OPTIONS for name in names if name not in text]
    assert missing == []
