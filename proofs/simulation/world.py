"""One run: a machine with one or two workers of a gateway, providers, clients, an operator, and faults."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import random
import re
import shutil
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, get_args

from proofs.simulation import laws, patches
from proofs.simulation.clients import Client
from proofs.simulation.clock import CLOCK
from proofs.simulation.disk import SimDisk
from proofs.simulation.fleet import FleetServer
from proofs.simulation.loop import OWNER, PACES, SimLoop, SimTask, Stuck, Trace
from proofs.simulation.network import Network, Weather
from proofs.simulation.threads import Threads
from wireglot.demo.service import Served
from wireglot.gateway import config
from wireglot.gateway.run import CLOSE_SECONDS, GRACE_SECONDS, Process, WorkerPlace
from wireglot.gateway.settings import SyncOrder
from wireglot.testing.scripted_upstream.behaviour import Behaviour, Fault, Recorded, answer_for
from wireglot.testing.scripted_upstream.upstream import Connection

PORT: Final = 4000
KEYS: Final = ("ada-opens-with-this-key", "bob-opens-with-this-key")
_SECRET: Final = "a-secret-of-this-simulated-machine"
_FLEET: Final = '\nurl = "postgresql://fleet.test/wireglot"\nshared = "redis://fleet.test"'
_MARK: Final = re.compile(rb"mark\d+x\d+y")
_SPEAKERS: Final = {"anthropic": "", "openai-chat": "/v1", "openai-responses": "/v1", "gemini": "/v1beta"}
_FAULTS: Final[tuple[Fault, ...]] = (
    "close", "reset", "stall", "garbage", "html", "empty", "truncated-json", "json-for-stream", "byte-chunks",
    "unframed", "short-body", "close-midstream", "reset-midstream", "stall-midstream", "no-terminal",
    "half-event", "bad-json", "error-first", "error-midstream",
)  # fmt: skip
_ERRORS: Final = (400, 401, 429, 500, 503, 529)
_END_SECONDS: Final = 20 + CLOSE_SECONDS + GRACE_SECONDS
"""The longest that a worker may take to end: its drain, and what follows."""
_HORIZON_SECONDS: Final = 3600.0
"""Of virtual time: a run that takes longer does not end."""


Kind = Literal["mixed", "crowd", "crashes"]
"""crowd: many impatient clients, and room for one. crashes: quick answers, and no disk that fails."""
_KINDS: Final[tuple[Kind, ...]] = ("mixed", "mixed", "crowd", "crashes")

_BACKGROUND_SECONDS: Final = 60


class Worker:
    """A simulated process of the gateway (`Owner`)."""

    def __init__(self, world: World, index: int, number: int) -> None:
        self.world = world
        self.index = index
        self.name = f"worker {index}.{number}"
        self.pid = 100 + number
        self.boot = world.boot
        self.alive = True
        self.handlers: dict[int, Any] = {}
        self.instances: set[str] = set()
        self.process: Process | None = None
        self.is_up = False
        self.ended = False
        self.stopped_at = 0.0
        self.descriptors: set[int] = set()
        self.task: asyncio.Task[None]

    def start(self) -> None:
        context = contextvars.copy_context()
        context.run(OWNER.set, self)
        self.task = self.world.loop.create_task(self._live(), context=context)

    async def _live(self) -> None:
        world = self.world
        world.trace.note(f"{self.name} starts")
        settings = config.load(world.config_path, environ=world.environ, overrides={})
        place = None
        if world.workers > 1:
            place = WorkerPlace(self.index, str(world.folder / "shared"))
        process = self.process = Process(
            settings, path=world.config_path, environ=world.environ, place=place, log_fd=world.log_fd
        )
        started = process.start

        async def start() -> None:
            await started()
            self.is_up = True

        process.start = start  # type: ignore[method-assign]  # to learn when it listens
        await process.serve()
        self.ended = True
        self.is_up = False
        world.trace.note(f"{self.name} ends")
        self.report_drops()
        laws.after_end(world, self)
        self.alive = False

    def signal(self, number: int) -> None:
        """As the system would call its handler, between two steps of the loop."""
        handler = self.handlers.get(number)
        if self.alive and callable(handler):  # else it is ignored
            self.world.trace.note(f"{self.name} signal {number}")
            if number == signal.SIGTERM and not self.stopped_at:
                self.stopped_at = CLOCK.now
            context = contextvars.copy_context()
            context.run(OWNER.set, self)
            context.run(handler, number, None)

    def must_end(self, seconds: float) -> None:
        """The process has itself killed then, which it never should have to."""
        self.world.loop.at(CLOCK.now + seconds, self._overdue)

    def _overdue(self) -> None:
        if self.alive:
            self.world.broken("drain ends", f"{self.name} had to be killed by its own watchdog")
            self.die(silently=False)

    def report_drops(self) -> None:
        """What it said itself that it has lost, or has not waited for."""
        if self.process is not None and hasattr(self.process, "state"):
            ledger = self.process.state.ledger
            self.world.dropped += ledger.dropped + ledger._drain.refused + ledger.journal.damaged
            self.world.unsynced += ledger.journal.unsynced

    def living_pids(self) -> set[int]:
        return {worker.pid for worker in self.world.living() if worker.boot == self.boot}

    def die(self, *, silently: bool) -> None:
        """Nothing of it runs from here on."""
        self.world.trace.note(f"{self.name} dies")
        self.report_drops()
        self.alive = self.is_up = False
        self.world.network.drop(self, silently=silently)
        for fd in sorted(self.descriptors):
            os.close(fd)  # and with it its locks
        self.descriptors.clear()


class Clients:
    """Owner of what is outside of the gateway."""

    name = "outside"
    alive = True


def _hash(key: str) -> str:
    return f"sha256:{sha256(key.encode()).hexdigest()}"


class World:
    def __init__(
        self,
        seed: int,
        folder: Path,
        trace: Trace,
        *,
        calm: bool = False,
        defect: Callable[[], None] | None = None,
    ) -> None:
        """`calm`: nothing goes wrong. `defect`: what puts one into the gateway."""
        self._defect = defect
        self.seed = seed
        self.trace = trace
        self.root = folder
        chance = self.chance = random.Random(f"world {seed}")
        self.calm = calm
        self.kind: Kind = "mixed" if calm else chance.choice(_KINDS)
        paces = PACES[:1] if calm else PACES[2:] if self.kind == "crowd" else PACES
        self.loop = SimLoop(random.Random(f"loop {seed}"), trace, chance.choice(paces))
        self.loop.set_exception_handler(self._unexpected)
        self.weather = self._weather()
        self.network = Network(self.loop, random.Random(f"network {seed}"), self.weather)
        self.threads = Threads(self.loop, lambda what: self.broken("no crash", what))
        self.loop.threads = self.threads
        self.disk = SimDisk(self.loop, self.threads, random.Random(f"disk {seed}"))
        self.found: list[str] = []
        """Laws that were broken."""
        self.counts: Counter[str] = Counter()
        self.workers = chance.choice((1, 1, 2)) if self.kind == "mixed" else 1
        self.sync: str = chance.choice(get_args(SyncOrder))
        self.kernel_syncs = chance.random() < 0.5
        self.faulty = 0.0 if calm else chance.choice((0.0, 0.1, 0.4))
        """How often a provider fails, as a part of all."""
        self.uses_disk_faults = self.kind == "mixed" and not calm and chance.random() < 0.4
        self.impatience = 0.6 if self.kind == "crowd" else chance.choice((0.05, 0.15, 0.6))
        """How often a client leaves before it has its answer."""
        self._answer_came = asyncio.Event()
        self.fleet: FleetServer | None = None
        if self.kind == "mixed" and not calm and chance.random() < 0.3:
            self.fleet = FleetServer(random.Random(f"fleet {seed}"), trace)
        self.fleet_faults = 0
        self.boots = 0
        self.power_losses = 0
        self.power_lost: list[float] = []
        self.kills = 0
        self.dropped = 0
        """Requests of which the gateway says that it kept no account, or that it went on without the disk."""
        self.unsynced = 0
        self.folder = folder
        self.started = 0
        self.running: list[Worker] = []
        self.outside = Clients()
        self.seen: Counter[str] = Counter()
        """How often each mark came to a provider."""
        self.clients: list[Client] = []
        self.log_fd = -1
        self.finale = False
        self._served = 0

    @property
    def store_faults(self) -> bool:
        """Whether the store has failed, or may have."""
        return self.uses_disk_faults or self.fleet_faults > 0

    @property
    def boot(self) -> str:
        return f"boot {self.boots}"

    def _weather(self) -> Weather:
        if self.calm or self.kind == "crashes":
            return Weather(latency=0.0001, jitter=0.0005)
        chance = self.chance
        return Weather(
            latency=chance.choice((0.0001, 0.001, 0.02)),
            jitter=chance.choice((0.0, 0.01, 0.2)),
            pieces=chance.choice((0.0, 0.2, 0.8)),
            window=chance.choice((2_000, 65_536)),
            cuts=chance.choice((0.0, 0.0, 0.1, 0.3)),
            lost_names=chance.choice((0.0, 0.0, 0.1)),
        )

    def living(self) -> list[Worker]:
        return [worker for worker in self.running if worker.alive]

    def broken(self, law: str, how: str) -> None:
        line = f"{law}: {how}"
        self.trace.note(f"BROKEN {line}")
        self.found.append(line)

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        self.broken("no crash", f"{context.get('message')}: {problem!r}")
        if problem is not None and self.trace._show is not None:
            self.trace._show("".join(traceback.format_exception(problem)))

    # From the outside.

    def run(self) -> None:
        CLOCK.begin(self.seed)
        SimTask.count = 0
        patches.install(self.network, self.threads, self.disk, kernel_syncs=self.kernel_syncs)
        if self.fleet is not None:
            patches.install_fleet(self.fleet)
        if self._defect is not None:
            self._defect()
        asyncio.set_event_loop(self.loop)
        context = contextvars.copy_context()
        context.run(OWNER.set, self.outside)
        story = self.loop.create_task(self._story(), context=context)
        story.add_done_callback(lambda _: self.loop.stop())
        self.loop.at(CLOCK.now + _HORIZON_SECONDS, self._too_long)
        try:
            self.loop.run_forever()
        except Stuck as stuck:
            self.broken("everything ends", str(stuck))
            return
        if story.done() and not story.cancelled() and story.exception() is not None:
            problem = story.exception()
            assert problem is not None
            self.broken("the simulator works", repr(problem))
            if self.trace._show is not None:
                self.trace._show("".join(traceback.format_exception(problem)))

    def _too_long(self) -> None:
        self.broken("everything ends", "the run does not")
        self.loop.stop()

    async def _story(self) -> None:
        chance = self.chance
        self._begin_machine()
        await self._open_providers()
        self.boot_workers()
        await self._until_up()
        crowd = self.kind == "crowd"
        for number in range(8 if crowd else chance.randint(2, 5)):
            address = ("127.0.0.1", PORT)
            client = Client(number, address, random.Random(f"client {self.seed} {number}"), list(KEYS))
            client.leaves = 0.0 if self.calm else self.impatience
            client.leaves_within = 0.3 if crowd else 3.0
            client.on_answer = self._answered
            self.clients.append(client)
        count, pause = chance.randint(2, 7), 0.05 if crowd else chance.choice((0.05, 1.0, 5.0))
        work = [asyncio.create_task(client.run(count, pause)) for client in self.clients]
        operator = asyncio.create_task(self._operate())
        await asyncio.gather(*work)
        await operator
        await self._finish()

    # The machine.

    def _begin_machine(self) -> None:
        self.folder = self.root / f"boot{self.boots}"
        (self.folder / "shared").mkdir(mode=0o700, parents=True)
        self.config_path.write_text(self._config(), encoding="utf-8")
        self.log_fd = os.open(self.root / "log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    @property
    def config_path(self) -> Path:
        return self.folder / "wireglot.toml"

    @property
    def environ(self) -> dict[str, str]:
        return {"XDG_DATA_HOME": str(self.folder), "HOME": str(self.folder)}

    def boot_workers(self) -> None:
        for index in range(self.workers):
            if not any(worker.alive and worker.index == index for worker in self.running):
                self.started += 1
                worker = Worker(self, index, self.started)
                self.running.append(worker)
                worker.start()

    async def _until_up(self) -> bool:
        """Whether all workers listen, within a time that is more than enough."""
        for _ in range(600):
            living = self.living()
            if len(living) == self.workers and all(worker.is_up for worker in living):
                return True
            for worker in self.running:
                if worker.task.done() and not worker.ended and worker.alive:
                    worker.die(silently=False)
                    problem = worker.task.exception()
                    if not self.uses_disk_faults:
                        self.broken("it starts", repr(problem))
                    self.boot_workers()
            await asyncio.sleep(0.1)
        return False

    def _config(self, variant: int = 0) -> str:
        """The same for every call, but for what a reload changes."""
        chance = random.Random(f"config {self.seed}")
        names = [f"u{number}" for number in range(chance.randint(1, 3))]
        tables = [
            f'[server]\nport = {PORT}\nlog = "json"\nworkers = {self.workers}\nsecret = "{_SECRET}"',
            f'[store]\nsync = "{self.sync}"\njournal = 262144{_FLEET if self.fleet is not None else ""}',
            f"[limits]\ndrain = {chance.choice((0.5, 5, 20))}\ndrain_again = 1\nping = {2 + variant}",
            f"requests = {chance.choice((2, 1000))}\nqueue_time = {chance.choice((0.2, 2))}",
            f"requests_per_key = {1 if self.kind == 'crowd' else chance.choice((1, 64))}",
            "[providers]\ndiscover = false",
        ]
        for number, name in enumerate(names):
            speaker = chance.choice(list(_SPEAKERS))
            host = f"{name}.test" if number % 2 else f"127.0.0.1:{9000 + number}"
            tables.append(
                f'[providers.{name}]\ndialect = "{speaker}"\nbase_url = "http://{host}{_SPEAKERS[speaker]}"\n'
                f'api_key = "the-provider-key-of-{name}"\nconcurrency = {chance.choice((1, 50))}\n'
                "timeouts = { connect = 2, first_byte = 20, idle = 20, total = 60 }"
            )
        targets = ", ".join(f'"{name}/*"' for name in names)
        tokens, places = chance.choice((3_000, 1_000_000)), chance.choice((2, 20))
        tables += [
            f'[models]\n"a-*" = [{targets}]',
            f'[keys.ada]\nhash = "{_hash(KEYS[0])}"\ntokens_per_day = {tokens}\ncost_per_day = 5.0',
            f'concurrent = {places}\n[keys.bob]\nhash = "{_hash(KEYS[1])}"',
            '[prices]\n"u*/*" = { input = 3, output = 15 }',
        ]
        return "\n".join(tables) + "\n"

    # Providers.

    async def _open_providers(self) -> None:
        for number in range(3):
            self.network.names[f"u{number}.test"] = f"10.0.0.{number}"
            for address in (("127.0.0.1", 9000 + number), (f"10.0.0.{number}", 80)):
                await self.loop.create_server(self._provider_connection, *address)

    def _provider_connection(self) -> Connection:
        self._served += 1
        return Connection(self._served, self._provide, lambda _: None, lambda _: None)

    def _provide(self, request: Recorded) -> tuple[Behaviour, Served]:
        for mark in set(_MARK.findall(request.body)):
            self.seen[mark.decode()] += 1
        behaviour = self._behaviour()
        self.trace.note(f"provider {request.path} {behaviour.fault or behaviour.error or 'well'}")
        return behaviour, answer_for(request, behaviour)

    def _behaviour(self) -> Behaviour:
        chance = self.chance
        at_once = self.finale or self.kind == "crashes"
        gap = 0.0 if at_once else chance.choice((0.0, 0.0, 0.01, 0.5))
        delay = 0.0 if at_once else chance.choice((0.0, 0.0, 0.05, 2.0))
        if self.finale or chance.random() >= self.faulty:
            return Behaviour(gap=gap, delay=delay, close=chance.random() < 0.1)
        self.counts["provider faults"] += 1
        if chance.random() < 0.4:
            return Behaviour(error=chance.choice(_ERRORS), retry_after=chance.choice((None, 0.5, 3.0)))
        return Behaviour(fault=chance.choice(_FAULTS), gap=gap, delay=delay)

    # The operator, and faults of the machine.

    async def _operate(self) -> None:
        if self.calm:
            return
        chance = self.chance
        acts = [
            self._reload,
            self._reload_twice,
            self._broken_reload,
            self._stop,
            self._stop_twice,
            self._kill,
            self._lose_power,
            self._jump,
            self._part,
        ]
        if self.kind == "crashes":
            acts = [self._kill, self._lose_power, self._lose_power, self._stop]
        elif self.fleet is not None:
            acts += [self._lose_fleet, self._lose_fleet, self._lose_calls, self._lose_calls]
        if self.uses_disk_faults:
            acts += [self._fill_disk, self._break_disk, self._slow_disk]
        for _ in range(chance.randint(0, 4)):
            await asyncio.sleep(chance.random() ** 2 * 6)
            act = chance.choice(acts)
            self.trace.note(f"operator: {act.__name__[1:]}")
            self.counts[act.__name__[1:].replace("_", " ")] += 1
            await act()

    def _signal_all(self, number: int) -> None:
        for worker in self.living():
            worker.signal(number)

    def _answered(self) -> None:
        self._answer_came.set()

    async def _after_an_answer(self) -> None:
        """A crash is worst when something has just been acknowledged."""
        if self.chance.random() < 0.7:
            self._answer_came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await self._answer_came.wait()

    async def _send_stop(self) -> None:
        """SIGTERM, and perhaps SIGHUP a few turns of the loop before or after."""
        signals = [signal.SIGTERM]
        if self.chance.random() < 0.5 and not self.calm:
            signals.insert(self.chance.randrange(2), signal.SIGHUP)
        for number in signals:
            self._signal_all(number)
            for _ in range(self.chance.randrange(12)):
                await asyncio.sleep(0)

    async def _reload(self) -> None:
        self.config_path.write_text(self._config(self.chance.randint(1, 5)), encoding="utf-8")
        self._signal_all(signal.SIGHUP)

    async def _reload_twice(self) -> None:
        await self._reload()
        await asyncio.sleep(self.chance.choice((0.0, 0.001, 0.25)))
        await self._reload()

    async def _broken_reload(self) -> None:
        before = self.config_path.read_text(encoding="utf-8")
        self.config_path.write_text(before[: self.chance.randrange(len(before))], encoding="utf-8")
        self._signal_all(signal.SIGHUP)
        await asyncio.sleep(self.chance.random() * 3)
        self.config_path.write_text(before, encoding="utf-8")

    async def _stop(self) -> None:
        await self._send_stop()
        await self._until_ended()
        self.boot_workers()
        await self._until_up()

    async def _stop_twice(self) -> None:
        self._signal_all(signal.SIGTERM)
        await asyncio.sleep(self.chance.random())
        await self._stop()

    async def _until_ended(self) -> None:
        """Each worker ends within what its limits add up to; its own watchdog is the last of them."""
        workers = self.living()
        while any(worker.alive for worker in workers):
            for worker in workers:
                if worker.task.done() and not worker.ended and worker.alive:
                    problem = worker.task.exception()
                    worker.die(silently=False)
                    self.broken("drain ends", f"{worker.name}: {problem!r}")
            await asyncio.sleep(0.1)

    async def _kill(self) -> None:
        await self._after_an_answer()
        living = self.living()
        if living:
            self.kills += 1
            self.chance.choice(living).die(silently=False)
        await asyncio.sleep(self.chance.random())
        self.boot_workers()
        await self._until_up()

    async def _lose_power(self) -> None:
        await self._after_an_answer()
        self.power_losses += 1
        self.power_lost.append(CLOCK.now)
        for worker in self.living():
            worker.die(silently=True)
        before = self.folder
        self.boots += 1
        self.folder = self.root / f"boot{self.boots}"
        self.folder.mkdir(mode=0o700)
        self.disk.after_power_loss(before, self.folder)
        shutil.rmtree(self.folder / "shared", ignore_errors=True)
        (self.folder / "shared").mkdir(mode=0o700)
        await asyncio.sleep(self.chance.random() * 3)
        self.boot_workers()
        await self._until_up()

    async def _jump(self) -> None:
        CLOCK.offset += self.chance.choice((-3600.0, -5.0, 5.0, 3600.0))

    async def _part(self) -> None:
        """A provider cannot be reached for a while."""
        number = self.chance.randrange(3)
        away = {("127.0.0.1", 9000 + number), (f"10.0.0.{number}", 80)}
        self.network.unreachable |= away
        for endpoint in list(self.network.open):
            if endpoint.names[1] in away:
                self.network.sever(endpoint, "silence")
        await asyncio.sleep(self.chance.random() * 10)
        self.network.unreachable -= away

    async def _lose_fleet(self) -> None:
        assert self.fleet is not None
        self.fleet_faults += 1
        self.fleet.away = True
        await asyncio.sleep(self.chance.random() * 8)
        self.fleet.away = False

    async def _lose_calls(self) -> None:
        assert self.fleet is not None
        self.fleet_faults += 1
        self.fleet.losing = self.chance.choice((0.05, 0.4))
        await asyncio.sleep(self.chance.random() * 8)
        self.fleet.losing = 0.0

    async def _fill_disk(self) -> None:
        self.disk.full = True
        await asyncio.sleep(self.chance.random() * 5)
        self.disk.full = False

    async def _break_disk(self) -> None:
        self.disk.failing = self.chance.choice((0.02, 0.5))
        await asyncio.sleep(self.chance.random() * 5)
        self.disk.failing = 0.0

    async def _slow_disk(self) -> None:
        self.disk.slow = 100.0
        await asyncio.sleep(self.chance.random() * 5)
        self.disk.slow = 1.0

    # The end: everything is well again, and must be found so.

    async def _finish(self) -> None:
        self.finale = True
        self.network.weather = Weather()
        self.network.unreachable.clear()
        self.disk.full, self.disk.failing, self.disk.slow = False, 0.0, 1.0
        self.config_path.write_text(self._config(), encoding="utf-8")
        self.boot_workers()
        if not await self._until_up():
            self.broken("it starts", "not after a minute")
            return
        await asyncio.sleep(10)
        await laws.ask_for_everything(self)
        await asyncio.sleep(5)
        await self._until_background_ends()
        for worker in self.living():
            laws.at_rest(self, worker)
        await laws.budgets(self)
        for client in self.clients:
            client.close()
        await self._stop_for_good()
        await laws.books(self)
        laws.log(self)

    async def _until_background_ends(self) -> None:
        """No client waits for it, also not one that left before it had an answer."""
        for _ in range(_BACKGROUND_SECONDS):
            states = [worker.process.state for worker in self.living() if worker.process is not None]
            if not any(state.background._works for state in states):
                return
            await asyncio.sleep(1)
        self.broken("background work ends", f"not after {_BACKGROUND_SECONDS} seconds")

    async def _stop_for_good(self) -> None:
        began = CLOCK.now
        await self._send_stop()
        await self._until_ended()
        if CLOCK.now - began > _END_SECONDS:
            self.broken("drain ends", f"after {CLOCK.now - began:.1f} s")


def simulate(
    seed: int, trace: Trace, *, calm: bool = False, defect: Callable[[], None] | None = None
) -> World:
    """One run, in a folder of its own in memory."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = Path(tempfile.mkdtemp(prefix="wireglot-sim-", dir=place))
    world = World(seed, folder, trace, calm=calm, defect=defect)
    try:
        world.run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return world
