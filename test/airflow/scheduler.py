"""Airflow as it runs at night: API server, DAG processor, scheduler with the local executor.

What a test asks Airflow for goes through its REST API, as from a script of a user.
"""

import itertools
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request

import psutil

# Short, so that tests are: a task without a heartbeat is given up after this many seconds.
# Not shorter, since a busy machine must not make a zombie of a task that is well.
HEARTBEAT_TIMEOUT = 12

SETTINGS = {
    "AIRFLOW__API__HOST": "127.0.0.1",
    "AIRFLOW__API__WORKERS": "1",
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__CORE__PARALLELISM": "8",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "600",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT),
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
}

# Logs are read from their files, so nobody need serve them.
COMPONENTS = {
    "api-server": [],
    "dag-processor": [],
    "scheduler": ["--skip-serve-logs"],
}


def free_port():
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(condition, what, seconds=120):
    """Ask until the answer is true, and return it."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"not after {seconds} s: {what}"
        time.sleep(0.1)
    return answer


class Airflow:
    """The components, with their logs and their current folder in one folder."""

    def __init__(self, folder, dags, environment):
        self.folder = folder
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {
            **environment,
            **SETTINGS,
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "no_proxy": "127.0.0.1",
        }
        self.components = {}
        self.token = None
        self.seconds = itertools.count()
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def start(self):
        """Start all, and return when the scheduler works and the DAGs are known."""
        for name, options in COMPONENTS.items():
            with open(self.folder / f"{name}.log", "wb") as log:
                self.components[name] = subprocess.Popen(
                    ["airflow", name, *options],
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
        wait_for(self._healthy, "Airflow runs", seconds=180)
        wait_for(lambda: self.request("GET", "dags")["total_entries"], "there are DAGs")
        errors = self.request("GET", "importErrors")["import_errors"]
        assert not errors, errors

    def _healthy(self):
        for name, component in self.components.items():
            if component.poll() is not None:
                text = (self.folder / f"{name}.log").read_text()
                raise RuntimeError(f"{name} ended with {component.returncode}:\n{text[-4000:]}")
        try:
            with self.open(f"{self.url}/auth/token") as answer:
                self.token = json.load(answer)["access_token"]
            # The API of the tasks is made at the first call, which takes seconds.
            with self.open(f"{self.url}/execution/health"):
                pass
            health = self.request("GET", "monitor/health")
        except urllib.error.URLError:
            return False
        return all(
            health[part]["status"] == "healthy"
            for part in ("metadatabase", "scheduler", "dag_processor")
        )

    def stop(self):
        """End the components, those that ask others first, with all that they started."""
        for component in reversed(self.components.values()):
            if component.poll() is not None:
                continue
            family = psutil.Process(component.pid).children(recursive=True)
            component.terminate()
            try:
                component.wait(30)
            except subprocess.TimeoutExpired:
                component.kill()
                component.wait()
            for child in family:
                try:
                    child.kill()
                except psutil.NoSuchProcess:
                    pass

    def request(self, method, path, body=None, missing=False):
        """The answer of the REST API; None for what does not exist, if that may be."""
        request = urllib.request.Request(
            f"{self.url}/api/v2/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with self.open(request) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            if error.code == 404 and missing:
                return None
            error.add_note(error.read().decode(errors="replace"))
            raise

    def connect_to(self, warehouse):
        """Make a warehouse the one that tasks find behind the connection `warehouse`."""
        connection = {
            "connection_id": "warehouse",
            "conn_type": "postgres",
            "host": warehouse.host,
            "port": int(warehouse.port),
            "login": warehouse.user,
            "schema": warehouse.database,
        }
        if self.request("GET", "connections/warehouse", missing=True):
            self.request("PATCH", "connections/warehouse", connection)
        else:
            self.request("POST", "connections", connection)

    def trigger(self, dag, date, **conf):
        """Start a run of a DAG for a date.

        A DAG has at most one run for a logical date, so each gets another second of the day.
        """
        logical_date = f"{date}T00:00:{next(self.seconds):02}Z"
        run = self.request(
            "POST", f"dags/{dag}/dagRuns", {"logical_date": logical_date, "conf": conf}
        )
        return Run(self, dag, run["dag_run_id"])

    def end_runs(self):
        """End what still runs, as a test that has failed leaves it."""
        for run in self.request("GET", "dags/~/dagRuns?state=queued&state=running")["dag_runs"]:
            path = Run(self, run["dag_id"], run["dag_run_id"]).path
            self.request("PATCH", path, {"state": "failed"})
        tasks = "dags/~/dagRuns/~/taskInstances?state=queued&state=running"
        wait_for(lambda: not self.request("GET", tasks)["total_entries"], "no task runs")

    def unpause(self, dag):
        """Let the scheduler make runs of a DAG."""
        self.request("PATCH", f"dags/{dag}", {"is_paused": False})

    def wait_for_runs(self, dag, count):
        """Wait until a DAG has so many successful runs, and no others."""

        def done():
            runs = self.request("GET", f"dags/{dag}/dagRuns")["dag_runs"]
            states = [run["state"] for run in runs]
            assert "failed" not in states
            return states == ["success"] * count

        wait_for(done, f"{dag} has {count} successful runs")

    def backfill(self, dag, first, last):
        """Run a DAG for dates again, also for those that were successful."""
        made = self.request(
            "POST",
            "backfills",
            {
                "dag_id": dag,
                "from_date": f"{first}T00:00:00Z",
                "to_date": f"{last}T00:00:00Z",
                "reprocess_behavior": "completed",
                "max_active_runs": 3,
            },
        )
        wait_for(lambda: self.request("GET", f"backfills/{made['id']}")["completed_at"], "backfill")


class Run:
    """A run of a DAG."""

    def __init__(self, airflow, dag, run_id):
        self.airflow, self.dag, self.run_id = airflow, dag, run_id
        self.path = f"dags/{dag}/dagRuns/{urllib.request.quote(run_id)}"

    def facts(self):
        return self.airflow.request("GET", self.path)

    def task(self, task):
        """What Airflow knows of the last try of a task."""
        return self.airflow.request("GET", f"{self.path}/taskInstances/{task}")

    def states(self, task):
        """How each try of a task ended, or what it does."""
        answer = self.airflow.request("GET", f"{self.path}/taskInstances/{task}/tries")
        return [one["state"] for one in answer["task_instances"]]

    def wait_for(self, task, state, try_number=1):
        """Wait until a try of a task is in a state."""

        def reached():
            now = self.task(task)
            return now if (now["try_number"], now["state"]) == (try_number, state) else None

        return wait_for(reached, f"try {try_number} of {task} is {state}")

    def wait(self, state="success"):
        """Wait for the end of the run, which must be the one that is wanted."""
        wait_for(lambda: self.facts()["state"] in ("success", "failed"), f"{self.run_id} ends")
        assert self.facts()["state"] == state, self.log()

    def process(self, task):
        """The process that runs the code of a task. Its parent is the task's supervisor."""
        return psutil.Process(self.task(task)["pid"])

    def clear(self, *tasks):
        """Have tasks run again, as the button of the user interface does."""
        self.airflow.request(
            "POST",
            f"dags/{self.dag}/clearTaskInstances",
            {
                "dry_run": False,
                "only_failed": False,
                "dag_run_id": self.run_id,
                "task_ids": list(tasks),
            },
        )

    def log(self, task=None, try_number=None):
        """The text of the logs of a run: of all tasks and tries, or of one."""
        folder = self.airflow.folder / "logs" / f"dag_id={self.dag}" / f"run_id={self.run_id}"
        pattern = f"task_id={task or '*'}/attempt={try_number or '*'}.log"
        return "\n".join(file.read_text() for file in sorted(folder.glob(pattern)))
