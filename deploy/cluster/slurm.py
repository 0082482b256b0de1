"""A Dask cluster on SLURM by dask-jobqueue: one job a node, one trial a core.

    pip install 'ebrank[cluster]' dask-jobqueue
    python deploy/cluster/slurm.py --jobs 10 --scheduler-file ~/scheduler.json &
    ebrank reproduce --dataset MSLR-30K --cluster ~/scheduler.json

Runs on a login node until it is stopped; its jobs end with it.
"""

from __future__ import annotations

import argparse
import signal

from dask_jobqueue import SLURMCluster


def main() -> None:
    """Ask for nodes, and keep them until Ctrl-C."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=4, help="jobs, one a node")
    parser.add_argument("--cores", type=int, default=32, help="cores of a node")
    parser.add_argument("--memory", default="120GB", help="memory of a node")
    parser.add_argument("--walltime", default="04:00:00")
    parser.add_argument("--queue", default=None, help="partition")
    parser.add_argument("--scheduler-file", required=True, help="where to write the address")
    options = parser.parse_args()
    cluster = SLURMCluster(
        cores=options.cores,
        processes=options.cores,  # so that each worker has one thread
        memory=options.memory,
        walltime=options.walltime,
        queue=options.queue,
        scheduler_options={"scheduler_file": options.scheduler_file},
        # lines of the job's script, before the workers start
        job_script_prologue=["export EBRANK_DATA=$HOME/datasets", "export OMP_NUM_THREADS=1"],
    )
    cluster.scale(jobs=options.jobs)
    print(f"{cluster.scheduler_address}; stop with Ctrl-C", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        cluster.close()


if __name__ == "__main__":
    main()
