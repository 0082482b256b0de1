"""Files for SLURM and Kubernetes can be read, and say of `ebrank` and `dask` what these know."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebrank.cli.reproduce import reproduce

FOLDER = Path(__file__).parents[1] / "deploy" / "cluster"


def test_the_batch_script_is_valid_bash() -> None:
    subprocess.run(["bash", "-n", FOLDER / "slurm.sbatch"], check=True)


def test_the_jobqueue_script_is_valid_python_with_one_thread_a_worker() -> None:
    tree = ast.parse((FOLDER / "slurm.py").read_text())
    [call] = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "SLURMCluster"
    ]
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    assert given["cores"] == given["processes"]


def test_the_kubernetes_file_describes_a_dask_cluster() -> None:
    document: dict[str, Any] = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    assert (document["apiVersion"], document["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    spec = document["spec"]
    [worker] = spec["worker"]["spec"]["containers"]
    [scheduler] = spec["scheduler"]["spec"]["containers"]
    assert worker["image"] == scheduler["image"]
    assert worker["args"][worker["args"].index("--nthreads") + 1] == "1"
    ports = {port["name"] for port in scheduler["ports"]}
    assert {port["targetPort"] for port in spec["scheduler"]["service"]["ports"]} <= ports
    mounted = {mount["name"] for mount in worker["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["worker"]["spec"]["volumes"]}


@pytest.mark.parametrize("name", ["slurm.py", "slurm.sbatch", "kubernetes.yaml"])
def test_options_exist(name: str) -> None:
    from distributed.cli import dask_scheduler, dask_worker

    known = {
        "scheduler": dask_scheduler.main,
        "worker": dask_worker.main,
        "reproduce": reproduce,
    }
    text = (FOLDER / name).read_text().replace("\\\n", " ")
    commands = re.findall(r"\b(?:dask|ebrank),? (scheduler|worker|reproduce)\b(.*)", text)
    assert commands
    for verb, rest in commands:
        options = {
            option
            for param in known[verb].params
            for option in (*param.opts, *param.secondary_opts)
        }
        assert set(re.findall(r"--[a-z-]+", rest)) <= options, verb
