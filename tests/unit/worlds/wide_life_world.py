"""A cluster in which more kinds of things happen by chance, each life with some of them."""

from collections.abc import Iterator
from typing import Any

import msgspec
from devices_world import Devices, asks, device, exactly, template_use
from extender_world import of, request_of
from hypernode_world import hyper_node, labelled, within
from kept_writes import written
from life_kinds import GPU, KINDS, LEVELS, NOTES, SPECS, WISHES
from life_world import ACTIONS, Life, Needs
from msgspec import json

from extender.planner.cycle import Planning
from extender.planner.framework import config, decisions
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.state.pods import PodRecord
from extender.planner.timing import Timing
from muster.api import names
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.kubernetes.core import Namespace, Pod, Taint
from muster.api.kubernetes.devices import PodResourceClaimStatus, ResourceClaim, ResourceClaimTemplate
from muster.api.kubernetes.meta import LabelSelector, ObjectMeta, ReportedCondition, format_time
from muster.api.muster.usage import PeriodUsage, PublishedUsage, QueueUsage, period_of
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy


class WideLife(Life, Devices):
    """A life with a few of the `KINDS`, so that pairs of them meet; the planner keeps its memory as in the process."""

    cycles = 14
    home = "ns"
    """The namespace of new objects."""
    kinds: frozenset[str] = frozenset()

    def __init__(self, number: int) -> None:
        self.specs: dict[str, dict[str, Any]] = {}
        self.notes: dict[str, dict[str, str]] = {}
        self.answers: dict[str, dict[str, str]] = {}
        self.told: dict[str, ReportedCondition] = {}
        self.requests: dict[str, ProvisioningRequest] = {}
        self.got: dict[str, tuple[tuple[str, str], ...]] = {}
        super().__init__(1000 + number)
        self.planning = Planning(self.configuration, Timing(staleness_grace_s=5.0 if number % 2 else 60.0))

    def meta(self, name: str, **more: Any) -> ObjectMeta:
        """Metadata of a new object."""
        return super().meta(name, **({"namespace": self.home} | more))

    def text_of(self, number: int) -> str:
        """As by default, with more plugins, or with others."""
        more = ("", "gpupack gpusharingorder podaffinity reservations drf sla", "nodeorder gpuspread resourcequota")
        names_of = [*" ".join(config.DEFAULT_TIERS).split(), *more[number % 3].split()]
        plugins = [{"name": name, "arguments": {"levels": LEVELS} if name == "topology" else {}} for name in names_of]
        return json.encode({"actions": ACTIONS, "tiers": [{"plugins": plugins}]}).decode()

    def tree(self) -> list[str]:
        """The queues and other objects of the cluster; a life has its kinds from here on."""
        queues = super().tree()
        if "limits" in self.kinds:
            self.queue("a1", parent="a", **{"max-per-user": f"{GPU}=8", "budget": f"{GPU}=20h/month,{GPU}=3h/day"})
            self.queue("b", parent="root", **{"limit-windows": f"Mon-Sun 00:00-12:00 UTC {GPU}=12"})
        if "scale-up" in self.kinds:
            timeout = {"scale-up-timeout": "2m"}
            self.queue("a2", parent="a", **{"scale-up": "condition", **timeout})
            self.queue("b1", parent="b", **{"scale-up": "provisioning-request", "safe-to-evict": "false", **timeout})
        if "spaces" in self.kinds:
            self.state.on_namespace(None, Namespace(metadata=ObjectMeta(name="other", labels={"team": "other"})))
            self.queue("a2", parent="a", **{"namespace-selector": "team!=other"})
        if "budgets" in self.kinds:
            for task, allowed in (("worker", 1), ("lead", 0)):
                self.budget(task, allowed=allowed, task=task)
        if "networks" in self.kinds:
            racks = range(1 + self.size // 2)
            made = [hyper_node(f"h{each}", 1, labelled(rack=f"r{each}")) for each in racks]
            made += [hyper_node("left", 2, within("h0", "h1")), hyper_node("right", 2, within("h2", "h3"))]
            for each in [*made, hyper_node("all", 3, within("left", "right"))]:
                self.state.on_hyper_node(None, each)
        if "devices" in self.kinds:
            self.device_class().device_class("a", 'device.attributes["gpu.example.com"].model == "A"')
            self.template("one", asks(exactly())).template("two", asks(exactly("gpu", 2)))
            self.template("a", asks(exactly("a")))
        return queues

    def stands_up(self, index: int, **more: Any) -> None:
        """A node with taints, devices and a size."""
        self.kinds = self.kinds or frozenset(self.chance.sample(KINDS, 6))
        if "rules" in self.kinds and index % 3:
            effect = "NoSchedule" if index % 3 == 1 else "PreferNoSchedule"
            more = {"taints": [Taint(key="team", value="x", effect=effect)]} | more  # type: ignore[arg-type]
        super().stands_up(index, **more)
        if "devices" in self.kinds:
            self.equip(f"node-{index}", *(device(f"d{number}", "AB"[number % 2]) for number in range(4)))

    def more_of(self, name: str, needs: Needs) -> tuple[Needs, dict[str, Any], dict[str, str]]:
        """Constraints, devices, users, and wishes."""
        chance = self.chance
        spec: dict[str, Any] = {}
        for kind in sorted(self.kinds & SPECS.keys()):
            spec |= chance.choice([{}, *SPECS[kind]])
        notes: dict[str, str] = {}
        for kind in sorted(self.kinds & NOTES.keys()):
            notes |= chance.choice([{}, *NOTES[kind]])
        if "gpu-fraction" in notes or "gpu-memory" in notes:
            needs = {task: {"cpu": 1} for task in needs}
        elif "devices" in self.kinds and self.home == "ns" and chance.random() < 0.6:
            needs = {task: {"cpu": 1} for task in needs}
            spec |= template_use(chance.choice(["one", "two", "a"]))
        wishes: dict[str, str] = {}
        for kind in sorted(self.kinds & WISHES.keys()):
            wishes |= chance.choice([{}, *WISHES[kind]])
        self.specs[f"{self.home}/{name}"], self.notes[f"{self.home}/{name}"] = spec, notes
        user = chance.choice(["", "alice", "alice", "bob"]) if "limits" in self.kinds else ""
        return needs, {"spec": spec, "notes": notes, "user": user}, wishes

    def comes(self) -> None:
        """A gang with a network, or with sub-groups, in one of two namespaces."""
        self.home = self.chance.choice(["ns", "other"]) if "spaces" in self.kinds else "ns"
        super().comes()
        group = self.state.groups[[*self.made][-1]]
        if "networks" in self.kinds and self.chance.random() < 0.6:
            mode = self.chance.choice(["hard", "soft"])
            network = NetworkTopology(mode=mode, highest_tier_allowed=self.chance.choice([1, 2, 3]))  # type: ignore[arg-type]
            group = self.change(group, spec={"network_topology": network})
        if "parts" in self.kinds and self.chance.random() < 0.4:
            network = NetworkTopology(mode="hard", highest_tier_allowed=1)
            size = self.chance.choice([1, 2])
            policy = SubGroupPolicy("p", network, size, 1, LabelSelector({"task": "worker"}), ["half"])
            self.change(group, spec={"sub_group_policy": [policy]})

    def member(self, key: str, task: str, rank: int, **more: Any) -> None:
        """The newest pod of a slot, with its constraints, and with its claim."""
        spec, uid = self.specs[key], self.pods[key, task, rank]["uid"]
        self.home = key.partition("/")[0]
        claims = []
        if "resourceClaims" in spec:
            name = f"{uid}-claim"
            claims = [PodResourceClaimStatus(name="devices", resource_claim_name=name)]
        node = more.get("node", "")
        said = {**self.notes[key], **self.answers.get(uid, {})}
        labels = {"task": task, "half": str(rank // 2)}
        told = [self.told[uid]] if uid in self.told and more.get("gated") else []
        super().member(key, task, rank, own=spec, notes=said, claims=claims, labels=labels, told=told, **more)
        if claims and uid not in self.got:
            self.allocates(spec["resourceClaims"][0]["resourceClaimTemplateName"], uid, name, node)

    def allocates(self, template: str, uid: str, name: str, node: str) -> None:
        """A claim is made, and kube-scheduler gives it devices where its pod is bound."""
        taken = {each for devices in self.got.values() for each in devices}
        there = [(node, f"d{number}") for number in ((0, 2) if template == "a" else (1, 3, 0, 2))]
        got = tuple(each for each in there if each not in taken)[: 2 if template == "two" else 1] if node else ()
        if got:
            self.got[uid] = got
        spec = self.state.device_objects[ResourceClaimTemplate, template].spec.spec
        self.claim(
            name, msgspec.to_builtins(spec), got=got, pod=self.state.pod_objects[uid], users=(uid,) if got else ()
        )

    def session(self, *_: Any) -> Session:
        """One cycle of the planner that remembers."""
        usage = None
        if "limits" in self.kinds:
            month, day = (period_of(kind, self.now).name for kind in ("month", "day"))
            spent = {GPU: 3600.0 * self.chance.choice([0, 1, 4, 30])}
            of_queue = QueueUsage(month=month, seconds=spent, day=PeriodUsage(day, spent))
            usage = PublishedUsage(self.now - 60, {"a1": of_queue}, ("month", "week", "day"))
        given = {"provisioning": self.requests, "provisioning_served": True, "usage": usage, "gone": self.gone_nodes}
        return self.planning.run(take_snapshot(self.state), self.now, **given)

    def lives(self) -> Iterator[str]:
        """The decisions of each cycle, and the writes of a last one."""
        yield from super().lives()
        self.happens()
        yield from written(self, self.session())

    def happens(self) -> None:
        """As before, and pods fail, nodes are lost, sizes change, requests are answered, and others take capacity."""
        super().happens()
        chance = self.chance
        for slot, pod in [*self.pods.items()]:
            if self.state.pods[pod["uid"]].terminating and chance.random() < 0.5:
                self.renew(*slot)
        bound = [*self.running()]
        if "failures" in self.kinds and bound and chance.random() < 0.4:
            slot, record = chance.choice(bound)
            self.member(*slot, node=record.node, phase="Failed", since=self.now - 5, bound=self.now - 10)
        if "sizes" in self.kinds and self.made and chance.random() < 0.3:
            key = chance.choice([*self.made])
            task = chance.choice([*self.made[key]])
            self.resize(key, task, chance.randint(1, 5))
        if "others" in self.kinds and chance.random() < 0.4:
            self.other(chance.randrange(5), f"node-{chance.randrange(self.size)}")
        if "closing" in self.kinds and chance.random() < 0.1:
            self.queue("a2", chance.choice(["Open", "Closing", "Closed"]), parent="a")
        for uid, request in self.requests.items():
            if not request.status.conditions and chance.random() < 0.5:
                kind = chance.choice(["Accepted", "Provisioned", "Failed"])
                said = ReportedCondition(kind, "True", last_transition_time=format_time(self.now))
                self.requests[uid] = request_of(request.metadata, request.spec.provisioning_class_name, [said])

    def resize(self, key: str, task: str, size: int) -> None:
        """A Job gets another number of replicas; its minimum is as high, and its pods follow."""
        self.scale(key, task, size)
        known = [slot for slot in self.pods if slot[:2] == (key, task)]
        for slot in known:
            if slot[2] >= size:
                self.vanishes(self.pods.pop(slot)["uid"])
        for rank in range(len(known), size):
            self.renew(key, task, rank)

    def other(self, number: int, node: str) -> None:
        """A pod of another scheduler comes, or goes."""
        uid = f"other-{number}"
        if known := self.state.pod_objects.get(uid):
            self.state.on_pod(known, None)
        elif node in self.state.nodes.index and self.free(node, GPU) >= 2000:
            spec = {**self.pod_spec({"cpu": 8, GPU: number % 3}), "nodeName": node}
            pod = msgspec.convert({"spec": spec, "status": {"phase": "Running"}}, Pod)
            pod.metadata = self.meta(uid, uid=uid)
            self.state.on_pod(None, pod)

    def ends(self, key: str) -> None:  # type: ignore[override]
        """All of a gang goes, with its requests."""
        self.requests.pop(self.state.groups[key].metadata.uid, None)
        super().ends(key)

    def carries_out(self, session: Session) -> None:
        """Also what pods are told, and requests for nodes."""
        for tell in of(session, decisions.SendNotice):
            said = {names.EVICT_AT: tell.evict_at, names.EVICT_FOR: tell.queue}
            saved = {names.CHECKPOINT: f"step=7,at={format_time(self.now)}"}
            self.says(tell.pod.uid, said | self.chance.choice([{}, {names.EVICT_READY: "true"}, saved]))
        for stay in of(session, decisions.WithdrawNotice):
            self.says(stay.pod.uid, dict.fromkeys((names.EVICT_AT, names.EVICT_FOR, names.EVICT_READY), ""))
        for note in of(session, decisions.AnnotateEviction):
            self.says(note.pod.uid, {names.PODS_SAFE_TO_EVICT: note.value, names.SAFE_TO_EVICT: note.value})
        for tell in of(session, decisions.SetCondition):
            reason, message = "Unschedulable" if tell.asks else "SchedulingGated", names.MESSAGE_PREFIX + tell.message
            self.told[tell.pod.uid] = ReportedCondition("PodScheduled", "False", reason, message)
        for wanted in of(session, decisions.RequestNodes):
            attempt = {names.SCALE_UP_ATTEMPT: str(wanted.attempt)}
            meta = self.meta(wanted.name, annotations=attempt)
            self.requests[wanted.gang.uid] = request_of(meta, wanted.provisioning_class)
        for request in of(session, decisions.WithdrawRequest):
            self.requests = {uid: each for uid, each in self.requests.items() if each is not request.request}
        super().carries_out(session)

    def says(self, uid: str, said: dict[str, str]) -> None:
        """A pod has these annotations from now on, and no empty ones."""
        now = self.answers.get(uid, {}) | said
        self.answers[uid] = {key: text for key, text in now.items() if text}

    def go(self, gone: set[str]) -> None:
        """Some need time to end."""
        slow = {uid for uid in sorted(gone) if "slow" in self.kinds and self.chance.random() < 0.5}
        for slot, pod in [*self.pods.items()]:
            if pod["uid"] in slow and (node := self.state.pods[pod["uid"]].node):
                end = format_time(self.now + 30)
                self.member(*slot, node=node, phase="Running", since=self.now - 5, deletion_timestamp=end)
        super().go(gone - slow)

    def vanishes(self, uid: str) -> None:
        """A pod is gone, and so is its claim."""
        super().vanishes(uid)
        if (ResourceClaim, f"{uid}-claim") in self.state.device_objects:
            self.gone(ResourceClaim, self.state.claimants.on_claim, f"{uid}-claim")
        self.got.pop(uid, None)

    def running(self) -> Iterator[tuple[tuple[str, str, int], PodRecord]]:
        """Bound pods that stay."""
        for slot, pod in self.pods.items():
            record = self.state.pods[pod["uid"]]
            if record.node and record.phase == "Running" and not record.terminating:
                yield slot, record

    def binds(self) -> None:
        """Pods are told what they are told; some are bound later."""
        for slot, pod in self.pods.items():
            record = self.state.pods[pod["uid"]]
            if record.gated and pod["uid"] in self.told:
                self.member(*slot, gated=True)
        for slot, record in [*self.running()]:
            if record.uid in self.answers:
                more = {"pin": record.pin, "epoch": record.epoch} if record.pin else {}
                self.member(*slot, node=record.node, phase="Running", since=record.since, bound=record.bound_at, **more)
        if "slow" not in self.kinds or self.chance.random() < 0.5:
            super().binds()
