"""Contracts in files: every bad one says what to do, and folders lose nothing."""

from __future__ import annotations

import enum
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.contract_files import (
    ContractSet,
    Known,
    dump_contract,
    load_contracts,
    parse_contract,
)
from benchmark_assets.adapters.yaml_files import parse_yaml
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.matchers import MATCHERS
from benchmark_assets.model.problem import InputError

CASES = Path(__file__).parents[1] / "data" / "contracts"
BAD = sorted((CASES / "bad").glob("*.yaml"))
GOOD = sorted((CASES / "good").glob("*.yaml"))

HEADER = 'workflow: orders\ncontract_version: "1"\n'
MINIMAL = HEADER + "tools: {required: [get_order]}\n"


def write(folder: Path, **files: str) -> Path:
    """Write files into a folder; `a__b="…"` is the file a/b.yaml."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def ids(found: ContractSet) -> list[str]:
    return [file.contract.id for file in found.contracts]


def problems(found: ContractSet, folder: Path) -> list[str]:
    return [str(problem).replace(f"{folder}/", "") for problem in found.problems]


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_contract_says_all_that_is_wrong(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    found = load_contracts([path])
    assert found.contracts == ()
    said = "".join(f"{problem}\n" for problem in found.problems)
    assert said == path.with_suffix(".txt").read_text(encoding="utf-8")
    with pytest.raises(InputError) as caught:
        found.raise_if_problems()
    assert caught.value.problems == found.problems


def test_every_bad_case_has_its_messages_and_every_message_its_case() -> None:
    texts = {path.stem for path in (CASES / "bad").glob("*.txt")}
    assert texts == {path.stem for path in BAD}
    assert len(BAD) >= 18


def test_the_bad_cases_together_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    found = load_contracts([Path("bad"), Path("good")])
    assert len(found.contracts) == len(GOOD)
    said = "".join(f"{problem}\n".replace("bad/", "") for problem in found.problems)
    assert said == "".join(path.with_suffix(".txt").read_text(encoding="utf-8") for path in BAD)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_contract_has_neither_problems_nor_warnings(path: Path) -> None:
    found = load_contracts([path])
    found.raise_if_problems()
    assert found.warnings == ()
    [file] = found.contracts
    assert file.path == path
    assert len(file.contract.content_hash) == 64


def test_the_good_cases_show_every_key_there_is() -> None:
    shown: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, Mapping):
            shown.update(value)
            value = list(value.values())
        for item in value if isinstance(value, list) else []:
            collect(item)

    def keys(schema: Any) -> set[str]:
        found: set[str] = set()
        for model in (schema, *schema["$defs"].values()):
            found.update(model["properties"])
        return found

    for path in GOOD:
        collect(parse_yaml(path.read_bytes(), path.name).data)
    assert keys(Contract.model_json_schema()) | set(MATCHERS) <= shown


def test_a_contract_is_what_its_file_says() -> None:
    [file] = load_contracts([CASES / "good" / "every_section.yaml"]).contracts
    contract = file.contract
    assert contract.id == "refunds/late_delivery"
    assert contract.label == "refunds@1.10"
    assert contract.applies_to.metadata["build"].equals == ("7",)
    assert contract.trajectory is not None
    refund = contract.trajectory.calls[1]
    assert refund.args["delivered_on"] == "2026-01-31"
    assert refund.args["limit"] == 1500.0
    assert refund.args["nested"] == {"lines": [{"sku": "X1", "count": 2}], "gift": None}
    assert contract.final is not None
    assert contract.final.schema_ == {
        "type": "object",
        "required": ["refunded"],
        "properties": {"refunded": {"const": True}},
    }


def test_anchors_and_merges_are_written_out() -> None:
    [file] = load_contracts([CASES / "good" / "anchors.yaml"]).contracts
    assert file.contract.trajectory is not None
    calls = [(call.tool, call.args, call.max) for call in file.contract.trajectory.calls]
    assert calls == [
        ("get_order", {"id": "ABC", "no": 1}, None),
        ("get_invoice", {"id": "ABC", "no": 1}, 2),
        ("cancel_order", {"id": "DEF", "no": 1}, None),
    ]


def test_ids_come_from_the_place_under_the_folder(tmp_path: Path) -> None:
    write(tmp_path, b=MINIMAL, a__x=MINIMAL, a__deep__y=MINIMAL, z=MINIMAL + "id: a/first\n")
    (tmp_path / "dotted.v2.yml").write_text(MINIMAL, encoding="utf-8")
    found = load_contracts([tmp_path])
    found.raise_if_problems()
    assert ids(found) == ["a/deep/y", "a/first", "a/x", "b", "dotted.v2"]
    assert ids(load_contracts([tmp_path / "a" / "x.yaml"])) == ["x"]
    assert [file.contract.name for file in found.contracts] == ids(found)


def test_what_is_no_contract_file_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, a=MINIMAL, _git__b="not: [yaml", _c="not: [yaml")
    (tmp_path / "_git").rename(tmp_path / ".git")
    (tmp_path / "_c.yaml").rename(tmp_path / ".c.yaml")
    (tmp_path / "golden").mkdir()
    for name in ("g.golden.json", "contract.schema.json", "golden.lock.json", ".g.json"):
        (tmp_path / "golden" / name).write_text("{}", encoding="utf-8")
    (tmp_path / "README.md").write_text("# Contracts", encoding="utf-8")
    found = load_contracts([tmp_path])
    found.raise_if_problems()
    assert ids(found) == ["a"]


def test_two_contracts_with_one_id(tmp_path: Path) -> None:
    write(tmp_path, a="# one\n" + MINIMAL + "id: same\n", b=MINIMAL, c=MINIMAL + "id: same\n")
    write(tmp_path / "other", b=MINIMAL + "name: later\n")
    found = load_contracts([tmp_path / "other", tmp_path])
    assert problems(found, tmp_path) == [
        "b.yaml:1: id: 'b' is also the id of other/b.yaml; give one of the two another `id`",
        "c.yaml:4: id: 'same' is also the id of a.yaml; give one of the two another `id`",
    ]
    assert [(file.contract.id, file.contract.name) for file in found.contracts] == [
        ("b", "later"),
        ("same", "same"),
    ]


def test_a_file_reached_twice_is_loaded_once(tmp_path: Path) -> None:
    write(tmp_path, a__x=MINIMAL, b=MINIMAL)
    (tmp_path / "link.yaml").symlink_to(tmp_path / "b.yaml")
    found = load_contracts([tmp_path, tmp_path / "a", tmp_path / "b.yaml"])
    found.raise_if_problems()
    assert ids(found) == ["a/x", "b"]


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    write(tmp_path, contracts__a=MINIMAL, elsewhere__b=MINIMAL)
    contracts = tmp_path / "contracts"
    (contracts / "loop").symlink_to(contracts, target_is_directory=True)
    (contracts / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere" / "up").symlink_to(tmp_path, target_is_directory=True)
    (contracts / "broken.yaml").symlink_to(tmp_path / "gone.yaml")
    found = load_contracts([contracts])
    assert ids(found) == ["a", "linked/b"]
    assert problems(found, tmp_path) == [
        "contracts/broken.yaml: cannot be read: No such file or directory"
    ]


def test_paths_without_contracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, good__a=MINIMAL)
    Path("empty").mkdir()
    Path("notes.txt").write_text("x", encoding="utf-8")
    found = load_contracts([Path(name) for name in ("gone", "empty", "notes.txt", "good")])
    assert [str(problem) for problem in found.problems] == [
        "gone: does not exist; name a contract file or a folder of them",
        "empty: no contracts in this folder; put contracts there, or name another folder",
        "notes.txt: is no contract file; contracts are *.yaml, *.yml and *.json files",
    ]
    assert ids(found) == ["a"]
    assert load_contracts([]) == ContractSet()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read anything")
def test_an_unreadable_folder_is_reported(tmp_path: Path) -> None:
    write(tmp_path, a=MINIMAL, locked__b=MINIMAL)
    (tmp_path / "locked").chmod(0)
    try:
        found = load_contracts([tmp_path])
    finally:
        (tmp_path / "locked").chmod(0o700)
    assert problems(found, tmp_path) == ["locked: cannot be read: Permission denied"]
    assert ids(found) == ["a"]


def test_a_file_name_that_is_no_unicode(tmp_path: Path) -> None:
    write(tmp_path, a=MINIMAL)
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.yaml")
    try:
        shutil.copy(tmp_path / "a.yaml", name)
    except OSError:
        pytest.skip("this file system takes Unicode names only")
    found = load_contracts([tmp_path])
    assert problems(found, tmp_path) == ["caf?.yaml: has a file name that is not UTF-8"]
    assert ids(found) == ["a"]


def test_warnings_say_what_is_hardly_meant(tmp_path: Path) -> None:
    write(
        tmp_path,
        header=HEADER,
        health=HEADER + "tools: {optional: [a]}\ntrace_health: {recovered_errors: allow}\n",
        ends=HEADER + "ends_with: user_stop\n",
        empty_section=MINIMAL + "final:\n",
        yes=HEADER + "trajectory:\n  calls:\n    - {tool: a, args: {answer: no, ok: true}}\n",
    )
    found = load_contracts([tmp_path])
    found.raise_if_problems()
    add = "add skills, input_context, output, tools, trajectory, final, budget or ends_with"
    assert [str(warning).replace(f"{tmp_path}/", "") for warning in found.warnings] == [
        "empty_section.yaml:4: final: is empty and has no effect; fill it in or remove it",
        f"header.yaml:1: checks nothing: every run will be unchecked; {add}",
        f"health.yaml:1: checks nothing: every run will be unchecked; {add}",
        (
            "yes.yaml:5: trajectory.calls[0].args.answer: YAML reads `no` as false; "
            'write false, or quote it if it is a text: "no"'
        ),
    ]


def test_warnings_about_what_is_read_and_changed(tmp_path: Path) -> None:
    page = "resources:\n  page:\n    - name: Main\n      variable: [{name: svcVacations}]\n"
    write(
        tmp_path,
        skills=HEADER + "skills:\n",
        tools=HEADER + "tools:\n",
        reads=HEADER + "input_context:\n",
        knowledge=MINIMAL + "knowledge: [docs/**]\n",
        changes=HEADER + "output:\n",
        all_reads=HEADER + "input_context:\nunrelated_reads: fail\n",
        misspelt=HEADER
        + page
        + "output:\n  - {resource: page.Main.variable.svcVacatons, operation: CREATE}\n",
        misspelt_part=HEADER
        + page
        + "input_context:\n  - resource: page.Main.varable.svcVacations\n",
        meant=HEADER + page + "output: [{resource: page.Main.variable.any, operation: CREATE}]\n",
        none_meant=HEADER + "skills: {}\ntools: {}\noutput: []\n",
    )
    found = load_contracts([tmp_path])
    found.raise_if_problems()
    assert [str(warning).replace(f"{tmp_path}/", "") for warning in found.warnings] == [
        "all_reads.yaml:3: input_context: is empty, so nothing is allowed; "
        "write `input_context: []` if meant, or remove it",
        "changes.yaml:3: output: is empty, so nothing is allowed; write `output: []` if meant, "
        "or remove it",
        "knowledge.yaml:4: knowledge: has no effect without input_context, which judges reads; "
        "add input_context",
        "misspelt.yaml:8: output[0].resource: means any variable of page Main, and the text "
        "'svcVacatons' somewhere in the trace; did you mean 'svcVacations'?",
        "misspelt_part.yaml:8: input_context[0].resource: means page.Main, and the text "
        "'varable' somewhere in the trace; did you mean 'variable'?",
        # It says nothing of reads, so it demands nothing.
        "reads.yaml:1: checks nothing: every run will be unchecked; add skills, input_context, "
        "output, tools, trajectory, final, budget or ends_with",
        "reads.yaml:3: input_context: is empty, so nothing has to be read; "
        "write `input_context: []` if meant, or remove it",
        "skills.yaml:3: skills: is empty, so nothing is allowed; write `skills: {}` if meant, "
        "or remove it",
        "tools.yaml:3: tools: is empty, so nothing is allowed; write `tools: {}` if meant, "
        "or remove it",
    ]


def test_names_of_what_is_outside_are_looked_up(tmp_path: Path) -> None:
    write(
        tmp_path,
        a=MINIMAL + "harness: app-bilder\nplugins:\n  no_secret: {}\n  speed: {}\n",
        b=MINIMAL + "harness: app-builder\nplugins:\n  no_secrets:\n",
    )
    known = Known(harnesses=("app-builder", "claude-code"), plugins=("no_secrets",))
    found = load_contracts([tmp_path], known)
    assert ids(found) == ["b"]
    assert problems(found, tmp_path) == [
        "a.yaml:4: harness: there is no harness profile 'app-bilder'; did you mean 'app-builder'?",
        "a.yaml:6: plugins.no_secret: there is no plugin 'no_secret'; did you mean 'no_secrets'?",
        "a.yaml:7: plugins.speed: there is no plugin 'speed'; known: no_secrets",
    ]
    assert ids(load_contracts([tmp_path])) == ["a", "b"]
    none = load_contracts([tmp_path / "b.yaml"], Known(harnesses=("app-builder",)))
    assert problems(none, tmp_path) == [
        "b.yaml:6: plugins.no_secrets: there is no plugin 'no_secrets'; "
        "name its file in benchmark.yaml",
    ]


def test_comments_order_and_quotes_do_not_change_a_contract() -> None:
    one = parse_contract(MINIMAL.encode(), "a.yaml", "a")
    other = parse_contract(
        b"# said otherwise\ntools:\n  required: get_order\ncontract_version: '1'\nworkflow: orders",
        "b.yaml",
        "a",
    )
    assert one.content_hash == other.content_hash


# Writing.

MISREAD = st.sampled_from(
    [
        "1.10",
        "1",
        "-0",
        "010",
        "1_000",
        "12:30",
        "1e3",
        "0x1F",
        "0o7",
        ".5",
        ".inf",
        ".nan",
        "no",
        "Yes",
        "on",
        "y",
        "N",
        "null",
        "~",
        "=",
        "<<",
        "-",
        "?",
        ":",
        "#",
        "2026-01-31",
        "2026-01-31T10:00:00Z",
        "*x",
        "&x",
        "!x",
        "|x",
        ">x",
        "@x",
        "`x",
        "%x",
        "{x}",
        "[x]",
        "'x'",
        '"x"',
        "a:b",
        "a#b",
        "---",
        "...",
        "",
        " ",
        "a: b",
        "a #b",
        " a",
        "a ",
        "\n",
        "a\n",
        "a\nb",
        " a\n b\n",
        "a \nb",
        "\ta\nb",
        "a\n\n",
        "\n\na",
        "\ufeffa",
        "a\x85b",
        'a\x85"b"',
        'a\r"b"',
        "a\u2029\\b",
        "a\u2028b",
        "\x00",
        "😀",
        "a" * 300,
        "- a\n- b\n",
    ]
)
TEXTS = (
    MISREAD | st.text(max_size=30) | st.text(alphabet="ab \n\r\x85\u2028\t:#-'\"\\", max_size=12)
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


def same(one: Any, other: Any) -> bool:
    """Equal with equal types and key order: `1`, `1.0` and `True` are three things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        pairs = zip(one.items(), other.items(), strict=False)
        return len(one) == len(other) and all(a == b and same(x, y) for (a, x), (b, y) in pairs)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(st.dictionaries(TEXTS, JSON, min_size=1, max_size=4))
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    text = dump_contract(data)
    document = parse_yaml(text.encode(), "f.yaml")
    assert document.problems == ()
    assert same(document.data, data)
    assert dump_contract(document.data) == text


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_contract_survives_being_written_again(path: Path) -> None:
    contract = parse_contract(path.read_bytes(), path.name, "x")
    text = dump_contract(parse_yaml(path.read_bytes(), path.name).data)
    assert parse_contract(text.encode(), path.name, "x").content_hash == contract.content_hash


def test_written_contracts_read_well() -> None:
    text = dump_contract(
        {
            "id": "tau2/airline/7",
            "workflow": "airline",
            "contract_version": "1.10",
            "description": "Cancel, then book.\nNo: the agent must not ask twice.\n",
            "applies_to": {"task": "7", "metadata": {"day": "2026-01-31", "beta": "no"}},
            "trajectory": {
                "calls": [
                    {
                        "tool": "book",
                        "args": {
                            "city": "Zürich",
                            "no": 1,
                            "id": {"regex": r"^\d+$"},
                            "passengers": [{"name": "Ana: B"}],
                            "bags": (),
                        },
                        "min": 1,
                    }
                ],
                "writes": ["book_*", "*_cancel", "cancel"],
                "extra": "reads_only",
            },
            "final": {"contains": ["327", "a text that is long enough to have " * 2]},
        }
    )
    assert text == (
        "id: tau2/airline/7\n"
        "workflow: airline\n"
        'contract_version: "1.10"\n'
        "description: |\n"
        "  Cancel, then book.\n"
        "  No: the agent must not ask twice.\n"
        "applies_to:\n"
        '  task: "7"\n'
        "  metadata:\n"
        '    day: "2026-01-31"\n'
        '    beta: "no"\n'
        "trajectory:\n"
        "  calls:\n"
        "    - tool: book\n"
        "      args:\n"
        "        city: Zürich\n"
        '        "no": 1\n'
        "        id:\n"
        "          regex: ^\\d+$\n"
        "        passengers:\n"
        '          - name: "Ana: B"\n'
        "        bags: []\n"
        "      min: 1\n"
        '  writes: [book_*, "*_cancel", cancel]\n'
        "  extra: reads_only\n"
        "final:\n"
        "  contains:\n"
        '    - "327"\n'
        '    - "a text that is long enough to have a text that is long enough to have "\n'
    )


def test_a_shared_list_is_written_out_twice() -> None:
    shared = ["a"]
    assert dump_contract({"b": shared, "a": shared}) == "b: [a]\na: [a]\n"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"a": {1: "x"}}, "a: the key 1 is not a text"),
        ({"a": [0, float("nan")]}, r"a\[1\]: nan is not JSON data"),
        ({"a": {"b": object}}, "a.b: .* is not JSON data"),
        ({"a": "\ud800"}, "a: .* is not Unicode text"),
    ],
)
def test_what_yaml_could_not_give_back_is_not_written(data: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dump_contract(data)


def test_texts_of_an_enumeration_are_texts() -> None:
    class Mode(enum.StrEnum):
        EXACT = "exact"

    assert dump_contract({"order": Mode.EXACT}) == "order: exact\n"
