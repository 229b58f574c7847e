"""`bench trace-fidelity`: a single agent's report against its model calls."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from benchmark_assets.adapters.fidelity_files import read_agent_trace, read_chat_trace
from benchmark_assets.cli.fidelity import (
    EXIT,
    described,
    keep,
    keep_option,
    preset_option,
    subject_option,
    verbose_option,
)
from benchmark_assets.cli.one_trace import open_file
from benchmark_assets.cli.options import config_option, json_option
from benchmark_assets.cli.output import stdout
from benchmark_assets.report.fidelity import agent_json, print_agent
from benchmark_assets.scoring.trace_fidelity import agent_trace as rules

FAMILY = "trace-fidelity"


@click.command(FAMILY)
@click.option(
    "--agent-trace",
    type=click.Path(path_type=Path),
    required=True,
    help="Agent trace file: what the agent reported.",
)
@click.option(
    "--chat-trace",
    type=click.Path(path_type=Path),
    required=True,
    help="Agent trace file with the model calls: responses of scope ChatTurn.",
)
@subject_option
@preset_option
@keep_option
@verbose_option
@config_option
@json_option
def command(
    agent_trace: Path,
    chat_trace: Path,
    subject: str,
    preset: str,
    store: str | None,
    verbose: bool,
    config: Path | None,
    as_json: bool,
) -> None:
    """Compare what a single agent reports with what its model calls were, in six classes.

    Exit codes: 0 PASS, 10 WARN, 9 FAIL by the score; 11 PENDING: the chat trace holds no model
    call; 1 a file or the set-up is wrong; 2 wrong usage.

    Example: bench trace-fidelity --agent-trace a.json --chat-trace c.json --subject travel
    """
    agent, chat = open_file(agent_trace), open_file(chat_trace)
    result = rules.reconcile(read_agent_trace(agent), read_chat_trace(chat))
    compared = 1.0 if result.chat_turns else 0.0
    keep(
        store,
        config,
        FAMILY,
        agent,
        preset=preset,
        subject=subject,
        rules=result.rules,
        outcome=result.outcome,
        score=result.score,
        coverage=compared,
        token_coverage=compared if result.chat_tokens else None,
        reason=result.reason,
        truth_sha256=chat.sha256,
    )
    # Whoever reads our output may have seen enough of it; the outcome stands.
    with contextlib.suppress(BrokenPipeError):
        if as_json:
            click.echo(agent_json(result, subject, full=verbose).decode(), nl=False)
        else:
            files = f"{described(agent)}; {described(chat)}"
            print_agent(result, subject, files, stdout(), full=verbose)
    raise SystemExit(EXIT[result.outcome])
