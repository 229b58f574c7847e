"""Golden traces at speed: the specification's sample grader, and this package's, files to verdicts.

`python perf/golden.py [TRACES]` writes a corpus of TRACES (default 2,000) cases to a temporary
folder, one fixture and one trace each, and grades all of them in this process: by the sample's
algorithm as it is given, by the same with its fixtures read once before, and by this package. It
prints each one's rate and its ratio to the sample, and what it found. Rounds are interleaved and
the medians of processor time are compared, since what else the machine does moves absolute figures
and hardly ratios.

The sample's algorithm is written here in other words: every fixture and every trace is read and
parsed, and what it does not look at it does not look at here.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmark_assets.pipeline.golden import Suite, plain_surroundings, read_fixtures
from tests.golden.corpus import Case, corpus

Json = dict[str, Any]
Found = dict[str, bool]
"""Fixture → whether its trace passed."""

ROUNDS = 9
PADDING = 29_161
"""Bytes of a trace in the second corpus: the mean of real ones, most of it results of tools."""


# The sample.


def parsed(path: Path) -> Json:
    content: Json = json.loads(path.read_text(encoding="utf-8"))
    return content


def sample_hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sample_judgement(fixture: Json, trace: Json) -> Json:
    """The sample's verdict: sequence, keys of each tool's last call, names, flag, top fields."""
    wanted = fixture["expect"]
    called = [entry["name"] for entry in trace.get("tools", [])]
    last_keys: dict[str, list[str]] = {}
    for entry in trace.get("tools", []):
        last_keys[entry["name"]] = sorted((entry.get("arguments") or {}).keys())
    complaints = []
    if called != wanted["tool_names"]:
        complaints.append(f"called {called!r}, wanted {wanted['tool_names']!r}")
    for tool, needed in wanted["required_arg_keys"].items():
        present = last_keys.get(tool, [])
        absent = [key for key in needed if key not in present]
        if absent:
            complaints.append(f"{tool} lacks {absent}")
    distinct = set(called)
    barred = [tool for tool in wanted.get("forbidden_tools", []) if tool in distinct]
    if barred:
        complaints.append(f"called {barred}, which is forbidden")
    if wanted.get("must_ask_before_write") and not bool(trace.get("asked_clarification")):
        changing = [n for n in called if n.startswith(("refund_", "create_", "charge_"))]
        if changing:
            complaints.append("wrote and had not asked")
    ending = trace.get("final") or {}
    complaints += [
        f"the payload lacks {field}"
        for field in wanted["final_schema"].get("required", [])
        if field not in ending
    ]
    return {
        "id": fixture["id"],
        "pass": not complaints,
        "failures": complaints,
        "path_hash": sample_hash(called),
    }


def sample_suite(fixtures_dir: Path, traces_dir: Path) -> Found:
    """The sample as it is given: each fixture is read, then the trace of its id."""
    found: Found = {}
    for path in sorted(fixtures_dir.glob("*.json")):
        fixture = parsed(path)
        trace_path = traces_dir / f"{fixture['id']}.json"
        if not trace_path.exists():
            found[fixture["id"]] = False
            continue
        verdict = sample_judgement(fixture, parsed(trace_path))
        found[verdict["id"]] = verdict["pass"]
    return found


def sample_suite_cached(fixtures: Mapping[str, Json], traces_dir: Path) -> Found:
    """The sample with its fixtures, by id, read before: only traces are read."""
    found: Found = {}
    for fixture_id, fixture in fixtures.items():
        trace_path = traces_dir / f"{fixture_id}.json"
        if not trace_path.exists():
            found[fixture_id] = False
            continue
        found[fixture_id] = sample_judgement(fixture, parsed(trace_path))["pass"]
    return found


# This package.


def product_suites(fixtures_dir: Path, traces_dir: Path) -> dict[str, Callable[[], Found]]:
    """How this package grades two folders.

    Its fixtures are read and compiled once, as a suite is kept for any number of folders of traces;
    or as one run of the command does it, from the files of both. Verdicts are what is compared;
    the same with every failure in words, which are worked out when they are asked for, beside it.
    """
    surroundings = plain_surroundings()
    kept = Suite(read_fixtures(fixtures_dir), surroundings)

    def verdicts(suite: Suite) -> Found:
        return {case.id: case.result == "PASS" for case in suite.run(traces_dir).cases}

    def in_words() -> Found:
        cases = kept.run(traces_dir).cases
        assert all(case.failures for case in cases if case.result != "PASS")
        return {case.id: case.result == "PASS" for case in cases}

    return {
        "this package": lambda: verdicts(kept),
        "  with failures in words": in_words,
        "  fixtures read anew": lambda: verdicts(Suite(read_fixtures(fixtures_dir), surroundings)),
    }


# The corpus on disk.


def gradable(case: Case) -> Json:
    """A case's fixture under an id of its own, with what the sample cannot do without."""
    expect = {"required_arg_keys": {}, **case.fixture["expect"]}
    return {**case.fixture, "id": case.case_id, "expect": expect}


def recorded(case: Case) -> Json:
    """A case's trace, which names no other fixture than the one it is graded by."""
    return {key: value for key, value in case.trace.items() if key != "fixture"}


def padded(trace: Json, size: int) -> Json:
    """The trace with results of tools so long that it has about the given number of bytes."""
    calls = trace["tools"]
    if not size or not calls:
        return trace
    each = max(0, size - len(json.dumps(trace))) // len(calls)
    text = ("lorem ipsum dolor sit amet, " * (each // 28 + 1))[:each]
    return {**trace, "tools": [{**call, "result": text} for call in calls]}


def write_corpus(cases: list[Case], folder: Path, size: int = 0) -> tuple[Path, Path]:
    """Write fixtures and traces, one file each; returns their folders."""
    fixtures, traces = folder / "fixtures", folder / "traces"
    for made in (fixtures, traces):
        made.mkdir(parents=True)
    for case in cases:
        text = json.dumps(gradable(case), indent=2)
        (fixtures / f"{case.case_id}.json").write_text(text, encoding="utf-8")
        text = json.dumps(padded(recorded(case), size))
        (traces / f"{case.case_id}.json").write_text(text, encoding="utf-8")
    return fixtures, traces


def specified_kind(case: Case) -> bool:
    """Whether the sample can read a case's fixture."""
    return "tool_names" in case.fixture["expect"] and "final_schema" in case.fixture["expect"]


def cases_for_both(count: int) -> list[Case]:
    """As many cases as asked for whose fixtures the sample can read, if it does not see all."""
    return [case for case in corpus(traces=4 * count) if specified_kind(case)][:count]


# Measuring.


def compared(suites: Mapping[str, Callable[[], Found]], cases: list[Case]) -> None:
    """Time each suite in interleaved rounds; print rates, ratios to the first, and outcomes."""
    times: dict[str, list[float]] = {name: [] for name in suites}
    found: dict[str, Found] = {}
    for _ in range(ROUNDS):
        for name, suite in suites.items():
            start = time.process_time()
            found[name] = suite()
            times[name].append(time.process_time() - start)
    base = statistics.median(next(iter(times.values())))
    for name, seconds in times.items():
        median = statistics.median(seconds)
        outcomes = found[name]
        assert len(outcomes) == len(cases), name
        faulty = [case for case in cases if case.fault is not None]
        missed = sum(outcomes[case.case_id] for case in faulty)
        wrong = sum(not outcomes[case.case_id] for case in cases) - len(faulty) + missed
        print(
            f"  {name:28} {len(cases) / median:8,.0f} traces/s  {base / median:5.2f} × the sample"
            f"  {missed} of {len(faulty)} faults passed, {wrong} clean traces failed"
        )


def measure(cases: list[Case], size: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        fixtures, traces = write_corpus(cases, Path(name), size)
        for folder in (fixtures, traces):
            sizes = [path.stat().st_size for path in folder.iterdir()]
            print(f"{folder.name}: {len(sizes):,} files, {statistics.mean(sizes):,.0f} bytes each")
        read = {content["id"]: content for content in map(parsed, sorted(fixtures.glob("*.json")))}
        suites: dict[str, Callable[[], Found]] = {
            "sample as given": lambda: sample_suite(fixtures, traces),
            "sample, fixtures cached": lambda: sample_suite_cached(read, traces),
        }
        compared({**suites, **product_suites(fixtures, traces)}, cases)


def main(count: int) -> None:
    cases = cases_for_both(count)
    for size in (0, PADDING):
        measure(cases, size)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
