"""Finding `benchmark.yaml`, what overrides it, and what its paths are relative to."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import FileSource, LangfuseSource, ProjectConfig


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project folder with a folder below and one beside it."""
    (tmp_path / "project" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "project"


def settings(folder: Path, text: str | bytes) -> Path:
    path = folder / "benchmark.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(folder: Path, text: str | bytes) -> list[str]:
    settings(folder, text)
    with pytest.raises(InputError) as caught:
        load_project(env={}, cwd=folder)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_without_a_file_all_is_default(root: Path) -> None:
    project = load_project(env={}, cwd=root)
    assert project.config == ProjectConfig()
    assert (project.file, project.root) == (None, root)
    assert project.store == str(root / "data/store")
    assert project.contract_paths() == (root / "contracts",)


@pytest.mark.parametrize("text", ["", "# store: elsewhere\n", "---\n"])
def test_a_file_that_sets_nothing_is_default_too(root: Path, text: str) -> None:
    file = settings(root, text)
    project = load_project(env={}, cwd=root)
    assert (project.config, project.file) == (ProjectConfig(), file)


def test_the_nearest_file_above_is_found(root: Path) -> None:
    file = settings(root, "store: here\n")
    settings(root.parent, "store: too far\n")
    project = load_project(env={}, cwd=root / "sub" / "deep")
    assert (project.file, project.root, project.store) == (file, root, str(root / "here"))


def test_the_argument_beats_the_environment_beats_the_search(root: Path) -> None:
    settings(root, "store: found\n")
    named = settings(root / "sub", "store: named\n")
    asked = root.parent / "elsewhere" / "mine.yaml"
    asked.write_text("store: asked\n", encoding="utf-8")
    env = {"BENCH_CONFIG": "sub", "BENCH_OTHER": "x", "LANGFUSE_HOST": "y"}
    assert load_project(env=env, cwd=root).file == named
    assert load_project(env={"BENCH_CONFIG": ""}, cwd=root).store == str(root / "found")
    project = load_project(Path("../elsewhere/mine.yaml"), env=env, cwd=root)
    assert (project.file, project.store) == (asked, str(asked.parent / "asked"))


def test_a_named_file_must_exist(root: Path) -> None:
    settings(root, "")
    with pytest.raises(InputError, match=r"gone\.yaml: the settings file does not exist; name a"):
        load_project(Path("gone.yaml"), env={}, cwd=root)
    with pytest.raises(InputError, match="the settings file, which BENCH_CONFIG names, does not"):
        load_project(env={"BENCH_CONFIG": "gone.yaml"}, cwd=root)
    with pytest.raises(InputError, match=r"deep/benchmark\.yaml: the settings file does not"):
        load_project(Path("sub/deep"), env={}, cwd=root)


@pytest.mark.parametrize(
    ("argument", "variable", "in_file", "expected"),
    [
        (None, None, "s", "{root}/s"),
        (None, "v", "s", "{cwd}/v"),
        ("a", "v", "s", "{cwd}/a"),
        (None, "", "s", "{root}/s"),
        (None, None, "/absolute/s", "/absolute/s"),
        (None, None, "../s", "{root}/../s"),
        ("s3://bucket/prefix", None, "s", "s3://bucket/prefix"),
        (None, "memory://x", "s", "memory://x"),
        (None, None, "simplecache::s3://b/p", "simplecache::s3://b/p"),
        (None, None, "file:///data/my%20store", "/data/my store"),
        (None, None, "~/s", "{home}/s"),
    ],
)
def test_the_store(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    argument: str | None,
    variable: str | None,
    in_file: str,
    expected: str,
) -> None:
    cwd = root / "sub"
    monkeypatch.setenv("HOME", str(root / "home"))
    settings(root, f'store: "{in_file}"\n')
    env = {} if variable is None else {"BENCH_STORE": variable}
    wanted = expected.format(root=root, cwd=cwd, home=root / "home")
    if "://" not in wanted:
        wanted = str(Path(wanted).resolve())
    assert load_project(store=argument, env=env, cwd=cwd).store == wanted


def test_an_empty_store_argument_is_no_request_for_the_default(root: Path) -> None:
    with pytest.raises(InputError, match="the store is an empty text"):
        load_project(store="", env={}, cwd=root)


def test_paths_in_the_file_are_relative_to_it(root: Path) -> None:
    settings(
        root,
        "contracts: [rules, /shared/rules, ../more]\n"
        "sources:\n"
        '  - {path: "traces/**/*", default_date: 2026-01-01}\n'
        "  - {kind: files, path: s3://bucket/traces, name: bucket, default_date: '2026-01-02'}\n"
        "first_date: 2024-02-29\n"
        "task: {from: session}\n",
    )
    project = load_project(env={}, cwd=root / "sub")
    assert project.contract_paths() == (
        root / "rules",
        Path("/shared/rules"),
        root.parent / "more",
    )
    local, remote = project.config.sources
    assert isinstance(local, FileSource)
    assert isinstance(remote, FileSource)
    assert project.source_path(local) == str(root / "traces/**/*")
    assert project.source_path(remote) == "s3://bucket/traces"
    assert (local.name, remote.name) == ("traces", "bucket")
    assert (local.default_date, remote.default_date) == (date(2026, 1, 1), date(2026, 1, 2))
    assert project.config.first_date == date(2024, 2, 29)
    assert project.config.task.from_ == "session"


def test_all_errors_come_at_once_and_located(root: Path) -> None:
    assert refused(
        root,
        "stor: x\n"
        "contracts: 5\n"
        "sources:\n"
        "  - {kind: file, path: traces}\n"
        "  - {paht: traces}\n"
        "  - {path: more, default_date: 2026-02-30}\n"
        "models:\n"
        "  gpt-4.1:\n"
        "    alias: openai/gpt-4.1\n"
        "    input_usd_per_mtok: cheap\n"
        "task: {from: tag}\n"
        "schedule: {timezone: Berlin, lookback_days: 999}\n"
        "first_date: soon\n"
        "model_key: no\n"
        "store: 2026-01-31\n",
    ) == [
        "benchmark.yaml:1: stor: is not a known key; did you mean 'store'?",
        (
            "benchmark.yaml:2: contracts: expected a text, found the number 5; "
            'quote it: contracts: "5"'
        ),
        (
            "benchmark.yaml:4: sources[0].kind: expected one of files, langfuse, "
            "langfuse-export, found 'file'; did you mean 'files'?"
        ),
        "benchmark.yaml:5: sources[1].path: is missing; add `path: …`, a file, a folder or a glob",
        "benchmark.yaml:5: sources[1].paht: is not a known key; did you mean 'path'?",
        "benchmark.yaml:6: sources[2].default_date: expected a date such as 2026-01-31",
        "benchmark.yaml:9: models.gpt-4.1.alias: is not a known key; did you mean 'aliases'?",
        "benchmark.yaml:10: models.gpt-4.1.input_usd_per_mtok: expected a number, found 'cheap'",
        (
            "benchmark.yaml:11: task.from: 'tag' does not have the expected form; "
            "write metadata.KEY, session or prompt"
        ),
        (
            "benchmark.yaml:12: schedule.timezone: 'Berlin' is not an IANA time zone, "
            "such as Europe/Berlin"
        ),
        "benchmark.yaml:12: schedule.lookback_days: must be 365 or less, is 999",
        "benchmark.yaml:13: first_date: expected a date such as 2026-01-31",
        (
            "benchmark.yaml:14: model_key: expected a text, found false, as YAML reads `no`; "
            'quote it: model_key: "no"'
        ),
        (
            "benchmark.yaml:15: store: expected a text, found the date 2026-01-31; "
            'quote it: store: "2026-01-31"'
        ),
    ]


def test_a_source_on_a_langfuse_server(root: Path) -> None:
    settings(
        root,
        "sources:\n"
        "  - {kind: langfuse}\n"
        "  - kind: langfuse\n"
        "    name: support\n"
        "    base_url: https://langfuse.example.com\n"
        "    public_key_env: SUPPORT_PUBLIC_KEY\n"
        "    secret_key_env: SUPPORT_SECRET_KEY\n"
        "    environment: production\n"
        "    filter: {team: [a, b], region: eu}\n"
        "    tags: nightly\n"
        "    from: 2026-11-01\n"
        "    requests_per_minute: 30\n",
    )
    plain, named = load_project(env={}, cwd=root).config.sources
    assert isinstance(plain, LangfuseSource)
    assert isinstance(named, LangfuseSource)
    assert (plain.name, plain.api, plain.from_, plain.environment) == (
        "langfuse",
        "auto",
        None,
        None,
    )
    assert named.filter == {"team": ("a", "b"), "region": ("eu",)}
    assert (named.tags, named.names, named.from_) == (("nightly",), (), date(2026, 11, 1))
    assert (named.requests_per_minute, named.in_flight) == (30.0, 4)


def test_what_is_wrong_with_a_source_on_a_langfuse_server(root: Path) -> None:
    found = refused(
        root,
        "sources:\n"
        "  - {kind: langfuse, name: a, public_key: pk-lf-planted}\n"
        "  - {kind: langfuse, name: b, secret_key_env: sk-lf-planted}\n"
        "  - {kind: langfuse, name: c, base_url: 'https://pk:planted@langfuse.example.com'}\n"
        "  - {kind: langfuse, name: d, base_url: cloud.langfuse.com}\n"
        "  - {kind: langfuse, name: e, base_url: 'http://a', base_url_env: A}\n"
        "  - {kind: langfuse, name: f, api: v3, in_flight: 0, from: soon, path: traces}\n"
        "  - {kind: langfuse, name: g, filter: {team: []}}\n",
    )
    assert found == [
        (
            "benchmark.yaml:2: sources[0].public_key: is not a known key; "
            "did you mean 'public_key_env'?"
        ),
        (
            "benchmark.yaml:3: sources[1].secret_key_env: is not the name of a variable; name the "
            "variable that holds the value, and write the value into .env.local"
        ),
        (
            "benchmark.yaml:4: sources[2].base_url: holds a user or a password; leave them out, "
            "variables hold the keys"
        ),
        (
            "benchmark.yaml:5: sources[3].base_url: is not an address; "
            "write it with https:// in front"
        ),
        "benchmark.yaml:6: sources[4]: give base_url or base_url_env, not both",
        "benchmark.yaml:7: sources[5].api: expected one of auto, v1, v2, found 'v3'",
        "benchmark.yaml:7: sources[5].from: expected a date such as 2026-01-31",
        "benchmark.yaml:7: sources[5].in_flight: must be 1 or more, is 0",
        found[8],
        ("benchmark.yaml:8: sources[6].filter.team: is empty; fill it in, or remove the key"),
    ]
    assert found[8].startswith("benchmark.yaml:7: sources[5].path: is not a known key; ")
    assert "planted" not in "".join(found)


def test_what_only_the_whole_file_can_tell(root: Path) -> None:
    assert refused(
        root,
        "sources: [{path: traces/}, {path: traces}]\n",
    ) == ["benchmark.yaml:1: two sources are named traces; give them a `name`"]
    assert refused(
        root,
        "models:\n  gpt-4.1: {aliases: [a]}\n  other:\n    aliases: [a]\n",
    ) == ["benchmark.yaml:4: models.other.aliases: a already names gpt-4.1"]
    assert refused(
        root,
        "models:\n  gpt-4.1:\n    input_usd_per_mtok: 2\n",
    ) == [
        (
            "benchmark.yaml:2: models.gpt-4.1: "
            "give input_usd_per_mtok and output_usd_per_mtok, or neither"
        )
    ]


def test_a_file_that_is_no_settings_file(root: Path) -> None:
    assert refused(root, "- store\n") == [
        "benchmark.yaml:1: is a list, expected `key: value` lines at the top level"
    ]
    assert refused(root, "store: a\nstore: b\n") == [
        "benchmark.yaml:2: store: is here twice, first at benchmark.yaml:1; keep one of them"
    ]
    assert refused(root, "store: é\n".encode("latin-1")) == [
        "benchmark.yaml:1: is not UTF-8: byte 0xe9 after `store:`; save it as UTF-8"
    ]
