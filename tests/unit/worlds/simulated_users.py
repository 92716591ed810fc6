"""Users of the simulated cluster: they submit, command, scale and delete at random."""

import random
from typing import Any

import msgspec
from simulated_api import Api

from muster.api.volcano.batch import COMMANDS, JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS

ACTIONS = ("AbortJob", "TerminateJob", "CompleteJob", "RestartJob")


class Users:
    """All of them; `trace` tells what they did."""

    def __init__(self, api: Api, chance: random.Random) -> None:
        self._api = api
        self._chance = chance
        self.trace: list[str] = []
        self.made = 0

    def submit(self) -> Job:
        """A new Job, perhaps under the name of one that was deleted."""
        taken = {job.metadata.name for job in self._api.all(JOBS)}
        name = self._chance.choice([name for name in ("a", "b", "c") if name not in taken] or ["d"])
        self.made += 1
        made: Job = self._api.add(JOBS, random_job(self._chance, name), "n")
        self.trace.append(f"submit {name} {msgspec.json.encode(made.spec).decode()}")
        return made

    def command(self) -> None:
        """A Command to a Job, now and then to an earlier one of its name."""
        jobs = self._api.all(JOBS)
        if not jobs:
            return
        job = self._chance.choice(jobs)
        action = self._chance.choice([*ACTIONS, "ResumeJob", "ResumeJob", "RestartJob", "SyncJob", "Dance"])
        uid = job.metadata.uid if self._chance.random() < 0.9 else "earlier"
        target = {"apiVersion": JOBS.api_version, "kind": "Job", "name": job.metadata.name, "uid": uid}
        self.trace.append(f"command {action} {job.metadata.name} {uid}")
        self._api.add(COMMANDS, {"metadata": {"generateName": "c-"}, "action": action, "target": target}, "n")

    def scale(self) -> None:
        """Another number of replicas and another minimum."""
        jobs = self._api.all(JOBS)
        if not jobs:
            return
        job = self._chance.choice(jobs)
        tasks = msgspec.to_builtins(job.spec.tasks)
        task = self._chance.choice(tasks)
        task["replicas"] = self._chance.randint(0, 3)
        if "minAvailable" in task:
            task["minAvailable"] = min(task["minAvailable"], task["replicas"])
        total = sum(one.get("replicas", 0) for one in tasks)
        spec = {"tasks": tasks, "minAvailable": self._chance.randint(min(1, total), total)}
        self.trace.append(f"scale {job.metadata.name} {spec['minAvailable']} {[one.get('replicas') for one in tasks]}")
        self._api.change(JOBS, job.metadata.name, {"spec": spec}, "n")

    def delete_group(self) -> None:
        """Somebody deletes a PodGroup."""
        groups = self._api.all(POD_GROUPS)
        if groups:
            self._api.remove(POD_GROUPS, self._chance.choice(groups))

    def delete_job(self) -> None:
        """A Job is deleted, in the fore- or background."""
        jobs = self._api.all(JOBS)
        if jobs:
            job = self._chance.choice(jobs)
            self.trace.append(f"delete {job.metadata.name}")
            self._api.remove(JOBS, job, foreground=self._chance.random() < 0.5)


def random_job(chance: random.Random, name: str) -> dict[str, Any]:
    """A small Job with policies."""
    tasks = []
    for task_name in ("x", "y")[: chance.randint(1, 2)]:
        replicas = chance.randint(0 if tasks else 1, 4)
        template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
        task: dict[str, Any] = {"name": task_name, "replicas": replicas, "template": template}
        if chance.random() < 0.5:
            task["minAvailable"] = chance.randint(0, replicas)
        if chance.random() < 0.3:
            task["policies"] = random_policies(chance)
        if tasks and chance.random() < 0.2:
            task["dependsOn"] = {"name": ["x"]}
        elif replicas in {2, 4} and chance.random() < 0.3:
            task["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": replicas // 2}
        tasks.append(task)
    total = sum(task["replicas"] for task in tasks)
    spec: dict[str, Any] = {
        "tasks": tasks,
        "minAvailable": chance.randint(1, total),
        "maxRetry": chance.randint(1, 4),
        "policies": random_policies(chance),
        "queue": "default",
    }
    if chance.random() < 0.2:
        spec["minSuccess"] = chance.randint(1, total)
    if chance.random() < 0.1:
        spec["ttlSecondsAfterFinished"] = chance.choice([0, 20])
    if chance.random() < 0.2:
        spec["plugins"] = {"svc": []}
    return {"metadata": {"name": name}, "spec": spec}


def random_policies(chance: random.Random) -> list[dict[str, Any]]:
    """Up to two policies for different events, most of them restarts."""
    known = ["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "*"]
    events = chance.choices(known, [8, 3, 1, 1, 1, 1, 1], k=chance.choice([0, 1, 1, 2]))
    actions = [*ACTIONS, "ResumeJob", *["RestartTask", "RestartPod", "RestartPartition"] * 2]
    policies: list[dict[str, Any]] = []
    for event in dict.fromkeys(events):
        policy: dict[str, Any] = {"events": [event], "action": chance.choice(actions)}
        if event == "PodPending" or chance.random() < 0.15:
            policy["timeout"] = chance.choice(["1s", "10s", "40s"])
        policies.append(policy)
    if chance.random() < 0.15:
        policies.append({"exitCode": 3, "action": chance.choice(actions)})
    return policies
