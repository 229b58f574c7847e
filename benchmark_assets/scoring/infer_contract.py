"""A starter contract from one observed trace, and what of it the trace itself would fail.

Belongs here: which resources, changes, skills and tools of a trace become which sections. Does
not belong here: writing YAML (`adapters/contract_files`), what lives where by convention
(`model/resources`), or elements and values in what was written (`written`).

Nothing is invented. A path that no convention maps, an element that cannot be told and an
operation that the trace leaves open are warnings, and so is every section that had to be left
out. What the contract demands is what this one run happened to do; what any run must do is for
people to decide.

The contract resolves on a healthy trace that was mapped whole; of any other, `forecast` names
every check that will fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmark_assets.model.contract import Contract, Operation
from benchmark_assets.model.resources import (
    PAGE_PARTS,
    TYPES,
    Located,
    Resources,
    Target,
    resolve,
    resources_at,
    write_reference,
)
from benchmark_assets.model.trace import FileEvent, TraceSnapshot
from benchmark_assets.model.verdict import Check, Verdict
from benchmark_assets.scoring.activity import Activity
from benchmark_assets.scoring.changes import Change, concerns, follow, net_effect
from benchmark_assets.scoring.content import occurs, parsed
from benchmark_assets.scoring.evaluate import ContractJudge
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import glob_escape
from benchmark_assets.scoring.paths import PathMap, endings, is_absolute, normal_path
from benchmark_assets.scoring.plugins import output
from benchmark_assets.scoring.plugins.base import name_call, unknown_harness
from benchmark_assets.scoring.written import Element, Values, changed_elements, values_to_match

LISTED_CALLS = 5
"""Most calls that one warning names."""

WHOLE_FILE_VALUES = 3
WHOLE_FILE_DEPTH = 2
"""Of a file that is a resource by itself little is matched: how many values, how deep."""

_ONLY_UPDATED: frozenset[Operation] = frozenset(["UPDATE"])
_FILE_SECTIONS = "resources, input_context, output"
_PREFERRED: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE")


@dataclass(frozen=True)
class Inferred:
    """A contract as JSON data in the order in which people read it, and what to review in it."""

    contract: dict[str, Any]
    warnings: tuple[str, ...]


def infer_contract(
    evidence: Evidence,
    *,
    workflow: str,
    contract_version: str = "1",
    contract_id: str | None = None,
    name: str | None = None,
    harness: str | None = None,
    files: bool = False,
) -> Inferred:
    """Infer what a trace shows was to be done.

    Args:
        evidence: The trace, with the harness profiles there are.
        workflow: The contract's workflow.
        contract_version: Its version.
        contract_id: Its id; without one its file's path is.
        name: What people are shown; without one the id is.
        harness: The harness profile to apply, and to name in the contract.
        files: Whether changed files that no path convention maps are resources, too, named by
            their paths; otherwise each is a warning.

    Raises:
        ValueError: If there is no profile called `harness`.
    """
    activity = evidence.activity(harness)
    header = {
        "workflow": workflow,
        "contract_version": contract_version,
        "id": contract_id,
        "name": name,
        "harness": harness,
    }
    inference = _Inference(evidence, activity, files=files)
    sections = {**inference.activity_sections(), "tools": inference.tools()}
    data = {key: value for key, value in {**header, **sections}.items() if value is not None}
    inference.unseen()
    _drop_what_does_not_match(data, evidence, inference.warnings)
    return Inferred(data, tuple(dict.fromkeys(inference.warnings)))


def forecast(judge: ContractJudge, evidence: Evidence) -> tuple[Verdict, list[str]]:
    """Judge the trace a contract was made from, and say of each check that fails how to cure it.

    Returns:
        The verdict, and `will fail: PLUGIN: CHECK: REASON` for every check that failed or could
        not be made; empty if the trace resolves.
    """
    verdict = judge.evaluate(evidence)
    warnings = [
        f"will fail: {result.plugin}: raised {result.error}"
        for result in verdict.plugins
        if result.error is not None
    ]
    for result in verdict.plugins:
        for check in result.checks:
            if check.outcome in ("failed", "error"):
                cure = _cure(result.plugin, check, evidence.trace)
                text = f"will fail: {result.plugin}: {check.name}: {check.reason}"
                warnings.append(f"{text}; {cure}" if cure else text)
    if verdict.outcome == "unchecked":
        warnings.append("nothing would be checked: the contract demands nothing of a trace")
    return verdict, warnings


def _cure(plugin: str, check: Check, trace: TraceSnapshot) -> str | None:
    """What a person may do about a check that the source trace fails."""
    kind = check.name.partition(": ")[0]
    if plugin == "trace_health" and kind in ("no failed calls", "no error spans"):
        return None if trace.error else "`trace_health: {recovered_errors: allow}` allows it"
    ending = trace.ended or "WORD"
    return {
        ("trace_health", "ended"): f"`ends_with: [{ending}]` accepts that ending",
        ("trace_health", "build"): "a java service among `output` demands a build that passed",
        ("tool_calls", "required"): "move the tool to `tools.optional` if it is not needed",
        ("output", "unrelated change"): "declare it under `resources` with its `path` and under "
        "`output`, or remove `output`",
    }.get((plugin, kind))


@dataclass
class _Registry:
    """The resources that references lead to, in the order in which they were met."""

    paths: dict[str, dict[str, str | None]] = field(default_factory=dict)
    parts: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def add(self, kind: str, name: str, path: str | None = None) -> None:
        if kind in TYPES:
            self.paths.setdefault(kind, {}).setdefault(name, path)
        else:
            self.paths.setdefault("page", {}).setdefault(name, None)

    def add_part(self, page: str, part: str, name: str) -> None:
        self.add(part, page)
        names = self.parts.setdefault(page, {}).setdefault(part, [])
        if name not in names:
            names.append(name)

    def remove_part(self, page: str, part: str, name: str) -> None:
        self.parts[page][part].remove(name)

    def data(self) -> dict[str, list[dict[str, Any]]]:
        """The registry as contract data."""
        return {
            kind: [self._entry(kind, name, path) for name, path in self.paths[kind].items()]
            for kind in TYPES
            if kind in self.paths
        }

    def _entry(self, kind: str, name: str, path: str | None) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": name}
        if path is not None:
            entry["path"] = path
        parts = self.parts.get(name, {}) if kind == "page" else {}
        for part in PAGE_PARTS:
            if parts.get(part):
                entry[part] = [{"name": inner} for inner in parts[part]]
        return entry

    def resources(self) -> Resources:
        """What is registered so far, as references resolve against it."""
        return Resources.model_validate(self.data())

    def target(self, reference: str) -> Target:
        """What a reference means by what is registered so far."""
        return resolve(reference, self.resources())


class _Inference:
    """Goes through one trace's activity, section by section, and collects warnings."""

    def __init__(self, evidence: Evidence, activity: Activity, *, files: bool) -> None:
        self.evidence = evidence
        self.activity = activity
        self.by_path = files
        self.warnings: list[str] = []
        self.registry = _Registry()
        self.output: list[dict[str, Any]] = []
        self.pages: set[str] = set()

    # Sections.

    def activity_sections(self) -> dict[str, Any]:
        """`skills`, `resources`, `input_context` and `output`, as far as a profile tells them."""
        trace = self.evidence.trace
        recorded = {"skills": bool(trace.skills), _FILE_SECTIONS: bool(trace.files)}
        left_out = [
            sections
            for sections, known in recorded.items()
            if unknown_harness(self.evidence, self.activity, known) is not None
        ]
        if left_out:
            tools = ", ".join(sorted({call.name for call in trace.tool_calls}))
            self.warnings.append(
                f"left out: {', '.join(left_out)}; no harness profile says what these tools do: "
                f"{tools}; add a profile, or name one with --harness"
            )
        found: dict[str, Any] = {} if "skills" in left_out else {"skills": self.skills()}
        return found if _FILE_SECTIONS in left_out else {**found, **self.files()}

    def skills(self) -> dict[str, Any] | None:
        """The skills that were loaded; those that only failed to load are not required."""
        loaded = [load.name for load in self.activity.skills if load.status != "error"]
        names = self._globs("skill", loaded)
        return {"required": names} if names else None

    def tools(self) -> dict[str, Any] | None:
        """Every tool that was called."""
        names = self._globs("tool", [call.name for call in self.evidence.trace.tool_calls])
        return {"required": names} if names else None

    def _globs(self, what: str, names: Sequence[str]) -> list[str]:
        """Names as the globs that fit them alone, each once."""
        named = list(dict.fromkeys(names))
        if any(not name.strip() for name in named):
            self.warnings.append(f"a {what} without a name is not in the contract")
        return [glob_escape(name) for name in named if name.strip()]

    def files(self) -> dict[str, Any]:
        """`resources`, `input_context` and `output`; a section that would be empty is None."""
        workspace = _Workspace(self.activity)
        assigned = self._assigned(workspace)
        read = self._read(workspace, assigned)
        self._changed(assigned)
        if not self.output and any(_is_change(event) for event in self.activity.files):
            self.warnings.append(
                "output: left out, since no change could be mapped; nothing says what may be changed"
            )
        return {
            "resources": self.registry.data() or None,
            "input_context": read or None,
            "output": self.output or None,
        }

    # What paths are.

    def _assigned(self, workspace: _Workspace) -> dict[str, Located]:
        """What each file of the trace is, by its path relative to the workspace."""
        seen: dict[str, list[FileEvent]] = {}
        for event in self.activity.files:
            for path in (event.path, event.moved_to):
                if event.status != "error" and path is not None:
                    seen.setdefault(workspace.key(path), []).append(event)
        options = {path: resources_at(path) for path in seen}
        self.pages = {found[0].name for found in options.values() if found}
        services = {
            located.name
            for found in options.values()
            for located in found
            if located.kind == "javaservice" and not located.conventional
        }
        chosen = {
            path: self._choose(path, found, seen[path], services)
            for path, found in options.items()
            if found
        }
        assigned = self._one_each(chosen, seen)
        for path, events in seen.items():
            inside = not is_absolute(path) and not path.startswith("..")
            if path not in assigned and self.by_path and inside and any(map(_is_change, events)):
                assigned[path] = Located("file", path, conventional=False)
            elif path not in assigned:
                self._unmapped(path, events)
        return assigned

    def _choose(
        self, path: str, found: Sequence[Located], events: Sequence[FileEvent], services: set[str]
    ) -> Located:
        """Of what may live at one path, what does: api and javaservice share theirs."""
        if {located.kind for located in found} != {"api", "javaservice"}:
            return found[0]
        api, service = found
        if api.name in services:
            self.warnings.append(
                f"{path} is taken for api {api.name}: the java service is its source"
            )
            return api
        java = "java" in path.lower() or any(
            occurs("JavaService", event.content or event.text or "") for event in events
        )
        is_, is_not = ("javaservice", "api") if java else ("api", "javaservice")
        self.warnings.append(
            f"{path} is taken for {is_} {api.name}; both kinds have that path: "
            f"if it is of kind {is_not}, change `resources` and the references to it"
        )
        return service if java else api

    def _one_each(
        self, chosen: dict[str, Located], seen: dict[str, list[FileEvent]]
    ) -> dict[str, Located]:
        """At most one file for each resource: the changed one, else the one named like it."""
        owners: dict[tuple[str, str], str] = {}
        for path, located in sorted(
            chosen.items(),
            key=lambda item: (
                all(event.operation == "read" for event in seen[item[0]]),
                not item[1].conventional,
                item[0].rpartition("/")[2].partition(".")[0] != item[1].name,
            ),
        ):
            owners.setdefault((located.kind, located.name), path)
        return {
            path: located
            for path, located in chosen.items()
            if owners[located.kind, located.name] == path
        }

    def _unmapped(self, path: str, events: Sequence[FileEvent]) -> None:
        changed = [event for event in events if event.operation != "read"]
        calls = self._calls(event.call for event in changed or events)
        what, cure = (
            ("changed", "and to `output`, or use --files")
            if changed
            else ("read", "or the path under `knowledge`")
        )
        self.warnings.append(
            f"{path}: {what} by {calls}, and no path convention says what it is; "
            f"add it under `resources.file` with a name and this path, {cure}"
        )

    def _calls(self, indices: Iterable[int | None]) -> str:
        calls = self.evidence.trace.tool_calls
        known = [i for i in dict.fromkeys(indices) if i is not None and i < len(calls)]
        named = [name_call(calls[index], index) for index in known[:LISTED_CALLS]]
        if len(known) > LISTED_CALLS:
            named.append(f"{len(known) - LISTED_CALLS} more")
        return ", ".join(named) or "the trace's own record of files"

    # What was read.

    def _read(self, workspace: _Workspace, assigned: dict[str, Located]) -> list[dict[str, Any]]:
        """A demand for each resource that was read before this trace itself changed it."""
        own: set[str] = set()
        references: dict[str, None] = {}
        for event in self.activity.files:
            path = workspace.key(event.path)
            if _is_change(event):
                own |= {path, workspace.key(event.moved_to or event.path)}
            elif event.status != "error" and path in assigned and path not in own:
                references[self._register(assigned[path], path)] = None
        return [{"resource": reference} for reference in references]

    def _register(self, located: Located, path: str) -> str:
        """Declare what a file is; returns the reference to all of it."""
        self.registry.add(located.kind, located.name, None if located.conventional else path)
        if located.kind in TYPES:
            return write_reference([located.kind, located.name])
        return self._part_reference(located.name, located.kind)

    def _part_reference(self, page: str, part: str, *name: str) -> str:
        """The reference to a page's part; quoted where another page's name begins like it."""
        if any(other.startswith(f"{page}.") for other in self.pages):
            quoted = page.replace('"', '""')
            return f'page."{quoted}".{write_reference([part, *name])}'
        return write_reference(["page", page, part, *name])

    # What was changed.

    def _changed(self, assigned: dict[str, Located]) -> None:
        paths = PathMap(assigned, _seen(self.activity), self.activity.roots)
        by_file: dict[str, list[Change]] = {}
        for change in follow(self.activity.files, paths):
            if change.declared is not None:
                by_file.setdefault(change.declared, []).append(change)
        for path, changes in by_file.items():
            located = assigned[path]
            if located.kind in PAGE_PARTS:
                self._parts(located.name, located.kind, changes)
            elif located.kind == "page" and not self._whole(located, path, changes, _ONLY_UPDATED):
                self._parts(located.name, "widget", changes)
            elif located.kind != "page":
                self._whole(located, path, changes)

    def _whole(
        self,
        located: Located,
        path: str,
        changes: Sequence[Change],
        but: frozenset[Operation] | None = None,
    ) -> bool:
        """Demand what was done to a resource that is a file; not if it is just that in `but`."""
        reference = self._register(located, path)
        effect = net_effect(self.registry.target(reference), changes)
        if effect.possible == but:
            return False
        operation = self._operation(reference, effect.possible)
        if operation is not None:
            self._demand(reference, operation, self._values_of_file(operation, changes[-1]))
        return True

    def _values_of_file(self, operation: Operation, last: Change) -> Values:
        new, old = (parsed(text or "") for text in (last.after, last.before))
        if operation == "DELETE" or not isinstance(new, dict):
            return Values({})
        before = old if isinstance(old, dict) else None
        if operation == "UPDATE" and before is None:
            return Values({})
        return values_to_match(
            new,
            before if operation == "UPDATE" else None,
            most=WHOLE_FILE_VALUES,
            depth=WHOLE_FILE_DEPTH,
        )

    def _parts(self, page: str, part: str, changes: Sequence[Change]) -> None:
        """Demand what was done to each element of a shared file, as far as names tell it."""
        kept: list[str] = []
        elements: dict[str, Element] = {}
        for change in changes:
            for element in changed_elements(part, change):
                first = elements.get(element.name, element)
                elements[element.name] = replace(element, before=first.before)
        for name in elements:
            self.registry.add_part(page, part, name)
        resources = self.registry.resources()
        for name, element in elements.items():
            reference = self._part_reference(page, part, name)
            effect = net_effect(resolve(reference, resources), changes)
            operation = self._operation(reference, effect.possible) if effect.possible else None
            if operation is None:
                self.registry.remove_part(page, part, name)
                continue
            kept.append(name)
            old = element.before if operation == "UPDATE" else None
            found = (
                values_to_match(element.after, old, name=name)
                if operation != "DELETE" and part != "javascript"
                else Values({})
            )
            self._demand(reference, operation, found)
        untold = [c for c in changes if not any(concerns(c, name) for name in kept)]
        if untold:
            self._any_part(page, part, changes, untold)

    def _any_part(
        self, page: str, part: str, changes: Sequence[Change], untold: Sequence[Change]
    ) -> None:
        self.registry.add(part, page)
        reference = self._part_reference(page, part)
        effect = net_effect(self.registry.target(reference), changes)
        self.warnings.append(
            f"{reference}: which {part} was changed by {self._calls(c.call for c in untold)} "
            "cannot be told, so any will do; name it if you know"
        )
        operation = self._operation(reference, effect.possible, prefer="UPDATE")
        if operation is not None:
            self._demand(reference, operation, Values({}))

    def _operation(
        self, reference: str, possible: frozenset[Operation], prefer: Operation = "CREATE"
    ) -> Operation | None:
        if not possible:
            self.warnings.append(
                f"{reference}: was changed, and in the end nothing was done to it; "
                "it is not in `output`"
            )
            return None
        order = (prefer, *_PREFERRED)
        operation = next(item for item in order if item in possible)
        if len(possible) > 1:
            others = " or ".join(item for item in _PREFERRED if item in possible - {operation})
            self.warnings.append(
                f"{reference}: {operation} may as well have been {others}; either passes where "
                "the trace cannot tell: decide which is meant"
            )
        return operation

    def _demand(self, reference: str, operation: Operation, values: Values) -> None:
        demand: dict[str, Any] = {"resource": reference, "operation": operation}
        if values.kept:
            demand["match"] = values.kept
        if values.left_out:
            keys = ", ".join(values.left_out)
            self.warnings.append(
                f"{reference}: `match` leaves out {keys}: what looks like an id, a number, a time, "
                "a hash or a secret may differ from run to run"
            )
        self.output.append(demand)

    # What nobody saw.

    def unseen(self) -> None:
        """Warn of calls that may have done what the contract does not know."""
        self._unseen(self.activity.opaque, "may have changed files that nothing names")
        self._unseen(self.activity.unseen_reads, "read files that nothing names")
        self._unseen(
            self.activity.unknown, f"is not known to the harness profile {self.activity.harness}"
        )

    def _unseen(self, calls: Sequence[int], what: str) -> None:
        by_tool: dict[str, list[int]] = {}
        for index in calls:
            by_tool.setdefault(self.evidence.trace.tool_calls[index].name, []).append(index)
        for found in by_tool.values():
            self.warnings.append(
                f"{self._calls(found)}: {what}; whatever it did is not in the contract"
            )


class _Workspace:
    """Paths relative to the workspace; where the trace does not say, the conventions do."""

    def __init__(self, activity: Activity) -> None:
        seen = list(_seen(activity))
        by_convention = [rest for path in seen for rest in endings(path) if resources_at(rest)]
        self._paths = PathMap(by_convention, seen, activity.roots)

    def key(self, path: str) -> str:
        """A path relative to the workspace, or one that no convention has if it lies elsewhere."""
        inside, normal = self._paths.relative(path), normal_path(path)
        if inside is not None:
            return inside
        return normal if is_absolute(normal) or normal.startswith("../") else f"../{normal}"


def _is_change(event: FileEvent) -> bool:
    return event.operation != "read" and event.status != "error"


def _seen(activity: Activity) -> Iterator[str]:
    for event in activity.files:
        yield event.path
        if event.moved_to is not None:
            yield event.moved_to


def _drop_what_does_not_match(
    data: dict[str, Any], evidence: Evidence, warnings: list[str]
) -> None:
    """Remove each `match` that the trace's own calls do not show in the way plugins look."""
    if "output" not in data:
        return
    contract = Contract.model_validate({"id": "starter", **data})
    checks = {
        check.name: check
        for result in ContractJudge(contract, [output.PLUGIN]).evaluate(evidence).plugins
        for check in result.checks
    }
    for demand, written in zip(contract.output or (), data["output"], strict=True):
        check = checks.get(f"match: {contract.target(demand).label}")
        if check is not None and check.outcome != "passed":
            written.pop("match", None)
            warnings.append(
                f"{written['resource']}: no `match`, since the call that changed it last does "
                "not show all of what was written"
            )
