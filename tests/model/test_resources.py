"""The resource registry: path conventions, references, and what is said of those that lead nowhere.

Expected paths are those of the published convention table, written out by hand.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.resources import (
    CONVENTIONS,
    ELSEWHERE,
    PAGE_PARTS,
    TYPES,
    Located,
    Resources,
    likely_misspelt,
    read_reference,
    resolve,
    resources_at,
    write_reference,
)
from tests.scoring.build import contract


def registry(**types: Any) -> Resources:
    return Resources.model_validate(types)


PAGE = {
    "name": "Main",
    "variable": [{"name": "svcVacations"}],
    "widget": [{"name": "tblVacations"}],
    "javascript": [{"name": "onReady"}],
}
SHOP = registry(
    api=[{"name": "hrdb"}, {"name": "pets", "path": "services/pets/designtime/pets_API_REST.json"}],
    javaservice=[{"name": "LeaveService"}],
    db=[{"name": "hrdb"}],
    design_tokens=[{"name": "Login"}],
    page=[PAGE],
)

# Reference → kind, name, path, qualifiers.
RESOLVED = {
    "api.hrdb": ("api", "hrdb", "services/hrdb/designtime/hrdb_API.json", ()),
    "javaservice.LeaveService": (
        "javaservice",
        "LeaveService",
        "services/LeaveService/designtime/LeaveService_API.json",
        (),
    ),
    "db.hrdb": ("db", "hrdb", "services/hrdb/designtime/hrdb_published_dataModel.json", ()),
    "design_tokens.Login": (
        "design_tokens",
        "Login",
        "src/main/webapp/pages/Login/Login.tokens-plan.json",
        (),
    ),
    "page.Main": ("page", "Main", "src/main/webapp/pages/Main/Main.html", ()),
    "page.Main.variable.svcVacations": (
        "variable",
        "svcVacations",
        "src/main/webapp/pages/Main/Main.variables.json",
        (),
    ),
    "page.Main.widget.tblVacations": (
        "widget",
        "tblVacations",
        "src/main/webapp/pages/Main/Main.html",
        (),
    ),
    "page.Main.javascript.onReady": (
        "javascript",
        "onReady",
        "src/main/webapp/pages/Main/Main.js",
        (),
    ),
    # An explicit path wins.
    "api.pets": ("api", "pets", "services/pets/designtime/pets_API_REST.json", ()),
    # What is left after the lookup qualifies.
    "api.hrdb.VacationController_getVacation": (
        "api",
        "hrdb",
        "services/hrdb/designtime/hrdb_API.json",
        ("VacationController_getVacation",),
    ),
    "db.hrdb.Vacation.startDate": (
        "db",
        "hrdb",
        "services/hrdb/designtime/hrdb_published_dataModel.json",
        ("Vacation", "startDate"),
    ),
    'api.hrdb."a.b c".d': (
        "api",
        "hrdb",
        "services/hrdb/designtime/hrdb_API.json",
        ("a.b c", "d"),
    ),
    "page.Main.header": ("page", "Main", "src/main/webapp/pages/Main/Main.html", ("header",)),
    "page.Main.variable.svcVacations.dataSet": (
        "variable",
        "svcVacations",
        "src/main/webapp/pages/Main/Main.variables.json",
        ("dataSet",),
    ),
    # No name: any of that kind on the page.
    "page.Main.variable": (
        "variable",
        None,
        "src/main/webapp/pages/Main/Main.variables.json",
        (),
    ),
    "page.Main.widget": ("widget", None, "src/main/webapp/pages/Main/Main.html", ()),
    "page.Main.javascript": ("javascript", None, "src/main/webapp/pages/Main/Main.js", ()),
    "page.Main.variable.other": (
        "variable",
        None,
        "src/main/webapp/pages/Main/Main.variables.json",
        ("other",),
    ),
    # A quoted segment is a name or a qualifier, never a kind.
    'page.Main."variable"': (
        "page",
        "Main",
        "src/main/webapp/pages/Main/Main.html",
        ("variable",),
    ),
}


@pytest.mark.parametrize("reference", RESOLVED)
def test_a_reference_means_what_it_says(reference: str) -> None:
    target = resolve(reference, SHOP)
    assert (target.kind, target.name, *target.paths, target.qualifiers) == RESOLVED[reference]


def test_every_row_of_the_convention_table_is_tried() -> None:
    assert {kind for kind, *_ in RESOLVED.values()} == set(CONVENTIONS)
    assert set(CONVENTIONS) == {*TYPES, *PAGE_PARTS} - {"file"}


@pytest.mark.parametrize("kind", TYPES)
def test_an_explicit_path_wins_for_every_type(kind: str) -> None:
    shop = registry(**{kind: [{"name": "a", "path": "x/y.z"}]})
    assert resolve(f"{kind}.a", shop).paths == ("x/y.z",)


@pytest.mark.parametrize("part", PAGE_PARTS)
def test_an_explicit_path_wins_inside_a_page_and_makes_the_file_its_own(part: str) -> None:
    page = {"name": "P", part: [{"name": "a", "path": "x/y.z"}, {"name": "b"}]}
    shop = registry(page=[page])
    assert resolve(f"page.P.{part}.a", shop).paths == ("x/y.z",)
    assert not resolve(f"page.P.{part}.a", shop).shares_file
    assert resolve(f"page.P.{part}.b", shop).shares_file
    # Any of that kind may be in either file.
    assert set(resolve(f"page.P.{part}", shop).paths) == {
        "x/y.z",
        CONVENTIONS[part].format(page="P"),
    }


def test_a_path_that_several_name_is_shared() -> None:
    page = {"name": "P", "variable": [{"name": n, "path": "vars.json"} for n in ("a", "b")]}
    assert resolve("page.P.variable.a", registry(page=[page])).shares_file


def test_widgets_are_where_their_page_is() -> None:
    page = {"name": "P", "path": "views/p.html", "widget": [{"name": "w"}]}
    assert resolve("page.P.widget.w", registry(page=[page])).paths == ("views/p.html",)


@pytest.mark.parametrize("kind", TYPES)
def test_whole_files_are_not_shared(kind: str) -> None:
    entry = {"name": "a", "path": "x/y.z"} if kind == "file" else {"name": "a"}
    assert not resolve(f"{kind}.a", registry(**{kind: [entry]})).shares_file


def test_a_file_is_where_its_path_says() -> None:
    shop = registry(file=[{"name": "readme", "path": "docs/README.md"}])
    target = resolve("file.readme.Installation", shop)
    assert (target.paths, target.qualifiers) == (("docs/README.md",), ("Installation",))
    with pytest.raises(ValidationError, match=r"file\.0\.path\n  Field required"):
        registry(file=[{"name": "readme"}])
    with pytest.raises(ValueError, match=r"resources\.file: \[{name: x, path: …}\]"):
        resolve("file.x", registry())


# Names that are no plain words.

ODD = ["hr.db", "my service", "größe", "会社", 'say "hi"', "a-b", "v1.2.3", "x.y z"]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_can_be_referenced_in_quotes(name: str) -> None:
    shop = registry(api=[{"name": name}])
    target = resolve(write_reference(["api", name, "op"]), shop)
    assert (target.name, target.qualifiers) == (name, ("op",))
    assert target.paths == (f"services/{name}/designtime/{name}_API.json",)


@pytest.mark.parametrize("name", ["hr.db", "my service", "größe", "会社", "v1.2.3"])
def test_an_odd_name_can_be_written_as_it_is_where_one_reading_fits(name: str) -> None:
    target = resolve(f"api.{name}.op", registry(api=[{"name": name}]))
    assert (target.name, target.qualifiers) == (name, ("op",))


def test_two_readings_are_refused_until_one_is_quoted() -> None:
    shop = registry(api=[{"name": "hr"}, {"name": "hr.db"}])
    with pytest.raises(ValueError, match=r'may mean "hr" or "hr\.db"; put the name'):
        resolve("api.hr.db", shop)
    assert resolve('api."hr.db"', shop).name == "hr.db"
    assert resolve('api."hr".db', shop).qualifiers == ("db",)


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_what_is_written_is_read_again(parts: list[str]) -> None:
    assert [segment.text for segment in read_reference(write_reference(parts))] == parts


# References that lead nowhere.

REFUSED = {
    "apis.hrdb": "there is no type of resource 'apis'; did you mean 'api'?",
    "zzz.hrdb": "types of resources: api, javaservice, db, design_tokens, page, file",
    "api": "names no api; write api.NAME, one of hrdb, pets",
    "api.hrbd": "there is no api 'hrbd' under resources; did you mean 'hrdb'?",
    "api.zzz": "there is no api 'zzz' under resources; declared: hrdb, pets",
    "page.Mian": "there is no page 'Mian' under resources; did you mean 'Main'?",
    "page.Mian.variable.x": "did you mean 'Main'?",
    "api..hrdb": "a part between dots is empty",
    "api.": "a part between dots is empty",
    ".api": "a part between dots is empty",
    'api."hrdb': "a quoted name is not closed",
    'api."hrdb"x': "a dot is missing at character 11",
    'api.""': "a part between dots is empty",
}


@pytest.mark.parametrize("reference", REFUSED)
def test_a_reference_that_leads_nowhere_says_what_is_near(reference: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is what is compared
        resolve(reference, SHOP)
    assert REFUSED[reference] in str(caught.value)
    assert str(caught.value).startswith(f"'{reference}'")


@pytest.mark.parametrize("resources", [None, registry(db=[{"name": "hrdb"}])])
def test_a_type_that_nothing_is_declared_of_says_how_to_declare_it(
    resources: Resources | None,
) -> None:
    with pytest.raises(ValueError, match=r"add it under resources.api: \[{name: hrdb}\]"):
        resolve("api.hrdb.op", resources)


def test_a_name_that_is_nearly_a_declared_one_is_noticed() -> None:
    nearly = resolve("page.Main.variable.svcVacatons", SHOP)
    assert likely_misspelt(nearly, SHOP) == "did you mean 'svcVacations'?"
    assert likely_misspelt(resolve("page.Main.variable.other", SHOP), SHOP) is None
    assert likely_misspelt(resolve("page.Main.variable", SHOP), SHOP) is None
    assert likely_misspelt(resolve("page.Main.variable.svcVacations", SHOP), SHOP) is None


@pytest.mark.parametrize(
    ("reference", "part"),
    [
        ("page.Main.varable.svcVacations", "variable"),
        ("page.Main.Variable", "variable"),
        ("page.Main.widgets", "widget"),
        ("page.Main.javascripts.load", "javascript"),
        ('page.Main."variable"', None),
        ("page.Main.title", None),
        ("page.Main", None),
        ("api.hrdb.varable", None),
    ],
)
def test_a_part_of_a_page_that_is_nearly_named(reference: str, part: str | None) -> None:
    wanted = None if part is None else f"did you mean '{part}'?"
    assert likely_misspelt(resolve(reference, SHOP), SHOP) == wanted


# In a contract.


def load(**sections: Any) -> Contract:
    return contract(resources=SHOP.model_dump(exclude_defaults=True), **sections)


def test_all_references_of_a_contract_are_resolved_while_it_loads() -> None:
    with pytest.raises(ValidationError) as caught:
        load(
            input_context=[{"resource": "api.hrdb"}, {"resource": "api.nope"}],
            output=[{"resource": "page.Mian", "operation": "CREATE"}],
        )
    said = str(caught.value)
    assert "input_context[1].resource: 'api.nope'" in said
    assert "output[0].resource: 'page.Mian'" in said


@pytest.mark.parametrize(
    "types",
    [
        {"api": [{"name": "a"}, {"name": "a"}]},
        {"page": [{"name": "P", "variable": [{"name": "v"}, {"name": "v", "path": "x"}]}]},
        {"page": [{"name": "P"}, {"name": "P"}]},
    ],
)
def test_a_name_is_declared_once(types: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="is already taken by an entry above"):
        registry(**types)


def test_the_same_name_may_be_of_two_types() -> None:
    assert resolve("api.hrdb", SHOP).paths != resolve("db.hrdb", SHOP).paths


def test_the_label_of_a_target_leads_back_to_it() -> None:
    for target in SHOP.targets():
        assert resolve(target.label, SHOP) == target


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1).filter(
        lambda name: name.strip()
    ),
    st.sampled_from(sorted(CONVENTIONS)),
)
def test_the_path_of_a_name_leads_back_to_it(name: str, kind: str) -> None:
    path = CONVENTIONS[kind].format(name=name, page=name)
    assert Located(kind, name) in resources_at(path)
    again = {CONVENTIONS[at.kind].format(name=at.name, page=at.name) for at in resources_at(path)}
    assert again == {path}


@pytest.mark.parametrize(
    "path",
    [
        "services/hrdb/designtime/other_API.json",
        "x/services/hrdb/designtime/hrdb_API.json",
        "services/hrdb/designtime/hrdb_API.json.bak",
        "services/ /designtime/ _API.json",
        "services/a/b/designtime/a/b_API.json",
        "services/hrdb/designtime/hrdb_apiXjson",
        "services/LeaveService/test/LeaveService.java",
        "services/LeaveService/src/.java/notes.md",
    ],
)
def test_other_paths_lead_to_nothing(path: str) -> None:
    assert resources_at(path) == ()


def test_places_off_the_conventions_need_a_path() -> None:
    paths = {
        "services/pets/designtime/pets_API_REST_SERVICE.json": "api",
        "services/pets/designtime/pets_API_WEBSOCKET_SERVICE.json": "api",
        "services/pets/src/com/acme/pets/Pets.java": "javaservice",
    }
    assert sum(map(len, ELSEWHERE.values())) == len(paths)
    for path, kind in paths.items():
        assert resources_at(path) == (Located(kind, "pets", conventional=False),)
