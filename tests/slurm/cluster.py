"""A real Slurm cluster on this machine: a controller and some nodes, each a daemon of its own, without systemd, cgroups
or accounting.

Everything lies in one new folder under /tmp; nothing outside it is written, and only processes that this cluster
started are ended. The daemons end with the process that started them, even if that one is killed.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scancel", "scontrol", "setpriv")
SBIN = "/usr/sbin:/sbin"
NODE_TIMEOUT_S = 10
"""After this many seconds without an answer the controller takes a node for lost, and its jobs with it (Slurm's
default: 300).
"""

CONFIGURATION = """\
ClusterName=causeway
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={state}/munge.socket
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd-%n.pid
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/slurmd-%n.log
SlurmdSpoolDir={state}/spool/%n
StateSaveLocation={state}/controller
PlugStackConfig={state}/plugstack.conf
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
ReturnToService=2
SlurmdTimeout={timeout}
KillWait=5
MinJobAge=3600
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
"""


class Cluster:
    """A running cluster, as a context manager.

    Parameters
    ----------
    nodes, cpus : int
        Nodes n1, n2, ... and CPUs of each; there may be more of these than the machine has.

    Attributes
    ----------
    environment : dict of str to str
        In which a user of the cluster works.
    """

    def __init__(self, nodes: int = 3, cpus: int = 2) -> None:
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.cpus = cpus
        self.daemons: dict[str, subprocess.Popen] = {}

    @staticmethod
    def lacks() -> str | None:
        """Return why there can be no cluster here, or None."""
        if os.geteuid() != 0:
            return "a local Slurm cluster needs root"
        missing = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:{SBIN}") is None]
        return f"not installed: {', '.join(missing)} (apt-get install slurm-wlm munge)" if missing else None

    def __enter__(self) -> "Cluster":
        # paths of sockets are limited to 107 characters, so not in pytest's folders
        self.state = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, *command: str) -> str:
        """Run one of Slurm's commands; return what it says."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def jobs(self) -> list[dict[str, str]]:
        """Return the cluster's jobs, finished ones too: id, state, comment, nodes (comma-separated), start, end
        (seconds).
        """
        keys = {"id": "%i", "state": "%T", "comment": "%k", "nodes": "%N", "start": "%S", "end": "%e"}
        told = self.run("squeue", "--noheader", "--states=all", "--sort=i", f"--format={'|'.join(keys.values())}")
        jobs = [dict(zip(keys, line.split("|"), strict=True)) for line in told.splitlines()]
        for job in jobs:
            job["nodes"] = (
                ",".join(self.run("scontrol", "show", "hostnames", job["nodes"]).split()) if job["nodes"] else ""
            )
        return jobs

    def processes(self, node: str) -> list[tuple[int, str]]:
        """Return number and command line of every process of a node's jobs, the steps' own managers first."""
        log = str(self.state / f"slurmd-{node}.log")
        children: dict[int, list[int]] = {}
        managers = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
                children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(pid)
                if "(slurmstepd)" in stat and log in {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()}:
                    managers.append(pid)
            except OSError:  # it ended meanwhile
                continue
        found = []
        todo = managers
        while todo:
            pid = todo.pop(0)
            try:
                found.append(
                    (
                        pid,
                        Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip(),
                    )
                )
            except OSError:
                continue
            todo += children.get(pid, [])
        return found

    def lose(self, node: str) -> None:
        """Lose a node as if its power failed: its daemon, its jobs' processes, all at once."""
        self.daemons[node].kill()
        self.daemons.pop(node).wait()
        self._kill(node)

    def stop(self) -> None:
        """End all jobs, then every process that this cluster started, and remove its folder."""
        if "controller" in self.daemons:
            subprocess.run(
                ["scancel", "--quiet", "--user=root"],
                env=self.environment,
                check=False,
                timeout=60,
                capture_output=True,
            )
            self._wait(lambda: not any(self.processes(node) for node in self.nodes), 10)
        for node in self.nodes:
            self._end(node)
            self._kill(node)
        self._end("controller")
        self._end("munge")
        shutil.rmtree(self.state, ignore_errors=True)

    def bring_up(self, node: str) -> None:
        """Start a node's daemon and wait until it takes jobs."""
        (self.state / "spool" / node).mkdir(parents=True, exist_ok=True)
        self._daemon(node, "slurmd", "-D", "-N", node, "-f", f"{self.state}/slurm.conf")
        self._until(
            lambda: self.run("sinfo", "-h", "-n", node, "-o", "%T").strip() in ("idle", "mixed", "allocated"),
            f"node {node}",
        )

    def _start(self) -> None:
        self.state.chmod(0o755)
        key = self.state / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        # Snakemake's plugin hides SLURM_CONF from what runs inside a job, where the `srun` of an MPI rule must find the
        # cluster
        self.bin = self.state / "bin"
        self.bin.mkdir()
        wrapper = self.bin / "srun"
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={self.state}/slurm.conf exec {shutil.which("srun")} "$@"\n')
        wrapper.chmod(0o755)
        self.environment = dict(
            os.environ, SLURM_CONF=f"{self.state}/slurm.conf", PATH=f"{self.bin}:{os.environ['PATH']}:{SBIN}"
        )
        controller, *ports = free_ports(1 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        text = CONFIGURATION.format(host=host, controller=controller, state=self.state, timeout=NODE_TIMEOUT_S)
        for node, port in zip(self.nodes, ports, strict=True):
            text += (
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus}"
                " RealMemory=16000\n"
            )
        (self.state / "slurm.conf").write_text(text)
        (self.state / "plugstack.conf").touch()
        (self.state / "controller").mkdir()
        files = {
            "socket": "munge.socket",
            "key-file": "munge.key",
            "pid-file": "munged.pid",
            "log-file": "munged.log",
            "seed-file": "seed",
        }
        self._daemon(
            "munge", "munged", "-F", "--force", *(f"--{option}={self.state}/{file}" for option, file in files.items())
        )
        self._until((self.state / "munge.socket").exists, "munged")
        self._daemon("controller", "slurmctld", "-D", "-i", "-f", f"{self.state}/slurm.conf")
        self._until(lambda: "is UP" in self.run("scontrol", "ping"), "slurmctld")
        for node in self.nodes:
            self.bring_up(node)

    def _daemon(self, name: str, *command: str) -> None:
        with open(self.state / f"{name}.out", "ab") as out:
            line = ["setpriv", "--pdeathsig", "TERM", *command]
            self.daemons[name] = subprocess.Popen(
                line, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def _end(self, name: str) -> None:
        daemon = self.daemons.pop(name, None)
        if daemon is None:
            return
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _kill(self, node: str) -> None:
        for pid, _ in self.processes(node):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _until(self, ready, what: str) -> None:
        def safely() -> bool:
            try:
                return bool(ready())
            except RuntimeError:  # not yet able to answer
                return False

        if not self._wait(safely, 30):
            logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in sorted(self.state.glob("*.out")))
            raise RuntimeError(f"{what} did not start within 30 seconds:\n{logs}")

    @staticmethod
    def _wait(ready, seconds: float) -> bool:
        limit = time.monotonic() + seconds
        while not (done := ready()) and time.monotonic() < limit:
            time.sleep(0.1)
        return done


def free_ports(count: int) -> list[int]:
    """Return numbers of ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
