"""The options that the files of ``deploy/`` give to askalike: each is one that a command has."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from askalike.cli.application import COMMANDS

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
EVERYWHERE = {"--log-json", "--quiet", "--verbose"}
CALL = re.compile(rf"askalike\"? ({'|'.join(COMMANDS)})\b((?:\\\n|[^\n;&#])*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def known(command: str) -> set[str]:
    named = (option for part in COMMANDS[command].params for option in (*part.opts, *part.secondary_opts))
    return {*named, *EVERYWHERE}


def test_every_call_of_askalike_has_options_that_it_knows() -> None:
    calls = [
        (path.name, command, option)
        for path in DEPLOY.rglob("*")
        if path.is_file()
        for command, words in CALL.findall(path.read_text(encoding="utf-8"))
        for option in OPTION.findall(words)
    ]
    assert {command for _, command, _ in calls} >= {"serve", "follow", "attach", "keys", "index"}
    assert [call for call in calls if call[2] not in known(call[1])] == []


def test_arguments_in_lists_are_known_to_their_command() -> None:
    values = (DEPLOY / "helm/askalike/values.yaml").read_text(encoding="utf-8")
    lists = dict(zip(("serve", "follow"), re.findall(r"^  arguments: .*", values, re.MULTILINE), strict=True))
    for command in ("serve", "follow"):
        template = DEPLOY / f"helm/askalike/templates/{'server' if command == 'serve' else 'follower'}.yaml"
        args = template.read_text(encoding="utf-8").partition(f"- {command}\n")[2].partition("resources:")[0]
        named = {*OPTION.findall(lists[command]), *OPTION.findall(args)}
        assert named
        assert named <= known(command)
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for part in service.values():
        command, *words = part.get("command", ["serve"])
        assert {option for word in words for option in OPTION.findall(word)} <= known(command)
