"""Hypothesis strategies for what traces may hold.

Belongs here: JSON data and parts of traces. Does not belong here: contracts, whose shape is
each test's own matter.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Texts without lone surrogates, which no JSON reader of ours lets in."""

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63])
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)

_KEYS = st.sampled_from(["a", "b", "id", "any", "regex", "tol", "literal", "contains"]) | texts


def json_values() -> st.SearchStrategy[Any]:
    """Any JSON value; keys that matchers use are frequent."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
        max_leaves=12,
    )


def tool_calls(names: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Tool calls of these tools as JSON data: any arguments, results, statuses and errors."""
    return st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(names),
                "arguments": st.dictionaries(_KEYS, scalars, max_size=3) | json_values(),
                "result": json_values(),
                "status": st.sampled_from(["ok", "error", None]),
            },
            optional={"error": texts},
        ),
        max_size=6,
    )


PATHS = [
    "src/main/webapp/pages/Main/Main.html",
    "src/main/webapp/pages/Main/Main.variables.json",
    "src/main/webapp/pages/Main/Main.js",
    "services/hrdb/designtime/hrdb_API.json",
    "services/Mailer/designtime/Mailer_API.json",
    "docs/guide.md",
]
"""Files of a project as contracts of these tests declare them, and one more."""

CONTENTS = [
    '{"svcA": {"operation": "list"}}',
    '{"svcA": {"operation": "find"}, "svcB": {}}',
    '[{"name": "svcA"}]',
    '<wm-table name="tblA" dataset="svcA"/>',
    "Page.onShow = function () { limit = 10; };",
    "",
]

HOSTILE: list[Any] = [
    None,
    0,
    True,
    [],
    {},
    [None, 1, ["src"], {"path": None}],
    "",
    " ",
    "/",
    "..",
    "../../..",
    "~",
    "C:\\a\\..\\b",
    "file:///a",
    "*?[",
    "a" * 5000,
    "a/" * 3000,
    "\x00",
    '["\\ud800"]',
    '{"path": "\\udfff"}',
    '[{"path": "a", "content": NaN, "old_string": Infinity}]',
    "[" * 3000,
    '{"a":' * 400 + "1" + "}" * 400,
    "cat <<EOF > 'a",
    'cd /tmp && rm -rf "$X" && (mv a b; cp -r . ../..) | tee x > y 2>&1 &',
    "echo `echo $(echo \\\\`",
]
"""What no sane agent would pass where a path, a content or a command is expected."""

_ARGUMENTS = (
    "path",
    "paths",
    "file_path",
    "files",
    "content",
    "contents",
    "old_string",
    "new_string",
    "edits",
    "source",
    "destination",
    "skill_names",
    "skill",
    "command",
    "notebook_path",
    "replace_all",
)


def nested(depth: int) -> Any:
    """A list in a list in a list …"""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def harness_calls(tools: list[str], *, sane: bool = False) -> st.SearchStrategy[list[Any]]:
    """Tool calls as a harness has them, as JSON data; unless `sane`, with hostile values."""
    files = st.fixed_dictionaries(
        {"path": st.sampled_from(PATHS), "content": st.sampled_from(CONTENTS)}
    )
    path, content = st.sampled_from(PATHS), st.sampled_from(CONTENTS)
    arguments: st.SearchStrategy[Any] = st.fixed_dictionaries(
        {},
        optional={
            "path": path,
            "file_path": path,
            "paths": st.lists(path, max_size=3),
            "content": content,
            "old_string": content,
            "new_string": content,
            "source": path,
            "destination": path,
            "skill_name": st.sampled_from(["binding", "charts"]),
            "skill": st.just("binding"),
            "command": path.map("rm {}".format) | path.map("cat {}".format),
            "files": st.lists(files, max_size=2),
        },
    )
    results: st.SearchStrategy[Any] = content | st.sampled_from(
        [None, {"created": True}, {"success": False}, "Error: not found", "BUILD SUCCESS"]
    )
    if not sane:
        hostile = st.sampled_from(HOSTILE) | st.just(nested(200)) | json_values() | path
        arguments |= hostile | st.dictionaries(st.sampled_from(_ARGUMENTS), hostile, max_size=5)
        results |= hostile
    return st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(tools),
                "arguments": arguments,
                "result": results,
                "status": st.sampled_from(["ok", "ok", "error", None]),
            },
            optional={"error": texts},
        ),
        max_size=6,
    )
