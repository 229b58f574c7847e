"""`dagster dev` and `dg dev` from the project's folder: they load, and show what `bench` did."""

from pathlib import Path

import pytest

from tests.bench import bench
from tests.services.serving import query, serving

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder made by `bench demo` alone, as one that installed the package has it."""
    folder = tmp_path_factory.mktemp("project")
    result = bench("demo", "--dir", folder, cwd=folder)
    assert result.code == 0, result.err
    return folder


@pytest.mark.parametrize("command", [["dagster", "dev"], ["dg", "dev"]], ids=" ".join)
def test_it_answers_with_the_graph_and_what_bench_did(project: Path, command: list[str]) -> None:
    if command[0] == "dg":
        # dg works in the folder of a package; that is the repository's.
        root = Path(__file__).resolve().parents[2]
        (project / "pyproject.toml").write_bytes((root / "pyproject.toml").read_bytes())
        (project / "benchmark_assets").symlink_to(root / "benchmark_assets")
    with serving(command, project) as address:
        nodes = query(
            address,
            """{ assetNodes {
                 assetKey { path } groupName dependencyKeys { path }
                 partitionStats { numMaterialized numFailed }
               } }""",
        )["assetNodes"]
        graph = {node["assetKey"]["path"][-1]: node for node in nodes}
        assert set(graph) == {
            "contracts",
            "trace_snapshots",
            "contract_evaluations",
            "workflow_fidelity",
            "leaderboard",
            "benchmark_report",
        }
        materialized = {
            name: node["partitionStats"]["numMaterialized"]
            for name, node in graph.items()
            if node["partitionStats"]
        }
        assert materialized == {
            "contracts": 6,
            "trace_snapshots": 56,
            "contract_evaluations": 24,
            "workflow_fidelity": 56,
        }
        runs = query(address, "{ runsOrError { ... on Runs { results { status } } } }")
        assert [run["status"] for run in runs["runsOrError"]["results"]] == ["SUCCESS"] * 5
        instance = query(address, "{ instance { info hasInfo } shouldShowNux canBulkTerminate }")
        assert instance["shouldShowNux"] is False
        schedules = query(
            address,
            """{ repositoriesOrError { ... on RepositoryConnection { nodes {
                 schedules { name cronSchedule } sensors { name } } } } }""",
        )["repositoriesOrError"]["nodes"][0]
        assert schedules["schedules"] == [{"name": "nightly", "cronSchedule": "0 3 * * *"}]
        assert [sensor["name"] for sensor in schedules["sensors"]] == ["follow_up", "watch"]
