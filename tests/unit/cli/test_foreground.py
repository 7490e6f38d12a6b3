from __future__ import annotations

import os

import msgspec
import pytest

from agentbus.cli import foreground
from agentbus.cli.foreground import Arguments, parse
from agentbus.runtime import exits


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        (["--foreground"], Arguments()),
        (["--foreground", "--config", "c.json"], Arguments("c.json")),
        (["--report-fd", "7", "--foreground"], Arguments(None, (7,))),
        (["--config", "c", "--foreground", "--report-fd", "3,11"], Arguments("c", (3, 11))),
    ],
)
def test_the_plain_shape_is_understood(arguments, parsed):
    assert parse(arguments) == parsed


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--config", "c"],
        ["--foreground", "--help"],
        ["--foreground", "--config"],
        ["--foreground", "--config=c"],
        ["--foreground", "--verbose", "1"],
        ["--foreground", "--report-fd", "x"],
        ["--foreground", "--report-fd", "7,"],
    ],
)
def test_anything_else_is_left_to_the_real_parser(arguments):
    assert parse(arguments) is None


def test_a_bad_configuration_is_told_to_the_person_and_to_the_starter(tmp_path, capsys):
    file = tmp_path / "config.json"
    file.write_text('{"prefetch_mib": 0}')
    reader, writer = os.pipe()
    code = foreground.run(Arguments(str(file), (writer,)))
    with open(reader, "rb") as pipe:
        line = pipe.read()
    assert code == exits.FAILED
    assert msgspec.json.decode(line)["error"]["code"] == "config_invalid"
    assert capsys.readouterr().err.startswith("agentbus: config_invalid: ")


def test_the_daemon_gets_the_settings_and_the_report(tmp_path, monkeypatch):
    file = tmp_path / "config.json"
    file.write_text('{"prefetch_mib": 2}')
    seen = []

    def run_daemon(configuration, report_fds):
        seen.append((configuration.settings.prefetch_mib, report_fds))
        return 7

    monkeypatch.setattr(foreground, "run_daemon", run_daemon)
    assert foreground.run(Arguments(str(file))) == 7
    assert seen == [(2, ())]
