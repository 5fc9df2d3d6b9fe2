"""Hosted tools on upstreams that do not run them: the model is offered functions in their place, the gateway
runs the calls, and the client gets one answer in its own dialect.

One answer consists of rounds. The first is the client's request itself; each further one is a request sent by
the gateway, with its own row in the ledger and the traces and its own part of the quotas.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from copy import copy
from itertools import chain
from typing import Any, Final, Protocol

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.hosted.rounds import OneAnswer, Round, RoundReply, RoundResult
from wireglot.gateway.hosted.runner import HostedRunners, HostedSession, Offered, function_name
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.request.headers import JSON
from wireglot.gateway.request.job import Incoming, Job
from wireglot.gateway.settings import Settings
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Reply
from wireglot_core.dialects.places import answer_located
from wireglot_core.ir.content import Foreign, Message, Origin, Part, Reasoning, Text
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.hosted import (
    RUN_AT,
    RUN_HERE,
    HostedCall,
    HostedResult,
    RanCall,
    continued,
)
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Usage, added
from wireglot_core.ir.request import HostedTool, Request, Tool, ToolChoice, tool_name
from wireglot_core.ir.stream import Event, Finish, PartStart
from wireglot_core.translate import plan
from wireglot_core.wire.json import encode

OPERATION: Final = "tool_round"
"""The operation of the second and later rounds, in the log, the ledger and the traces."""
MAX_ROUNDS: Final = 10
"""Rounds of an answer that call a hosted tool; one more answers without tools."""
MAX_SECONDS: Final = 600.0
"""Seconds after which an answer is offered no more hosted tools."""
MAX_NATIVE: Final = 4096
"""Targets for which it is cached whether they run a hosted tool themselves."""
_MAX_CALLS_AT_ONCE: Final = 8
"""Calls of hosted tools in one round; further calls get an error."""
_ONE_ANSWER: Final = Loss(
    "$.sampling.candidates", "candidates", "dropped", "one answer where the gateway runs a tool"
)
_ID_BYTES: Final = 11
_SEARCHES_TOOLS: Final = "tool_search"
"""Offered last: it holds back tools that others offer."""


class AskRound(Protocol):
    def __call__(
        self, incoming: Incoming, body: bytes, reply: Reply, within: str, operation: str, round: Round
    ) -> Awaitable[str]:
        """Have a round answered, on behalf of the request with the id `within`."""
        ...


Keep = Callable[[Exchange, Response], Awaitable[None]]
CountHostedCall = Callable[[str, str, str], None]
"""Called with the tool, what ran it, and the outcome of each call."""


class _Running(msgspec.Struct, eq=False):
    """A hosted tool of the request, and its session."""

    tool: HostedTool
    session: HostedSession
    name: str
    """The name of the runner."""
    renamed: dict[str, str] = {}
    """The function's name for the model -> its own name, if the client uses that one itself."""
    shown: bool = False
    """Whether the client was shown what was done before the first round."""


class HostedTools:
    """A step, the innermost. Passes on every request without a tool that the gateway runs."""

    def __init__(
        self,
        inner: Answerer,
        runners: HostedRunners,
        *,
        rebuild: Callable[[Exchange, Target], None],
        ask: AskRound,
        keep: Keep,
        count: CountHostedCall,
    ) -> None:
        """`rebuild`: makes earlier turns readable for a target. `keep`: stores a whole answer's state."""
        self._inner = inner
        self._runners = runners
        self._rebuild = rebuild
        self._ask = ask
        self._keep = keep
        self._count = count
        self._settings: Settings | None = None
        self._serving: HostedRunners = {}
        """The runners that are on under `_settings`."""
        self._native: dict[tuple[str, str, str, str, tuple[bool, bool] | None], bool] = {}

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        settings = exchange.job.settings
        if settings is not self._settings:
            self._adopt(settings)
        tools = self._lacking(exchange, exchange.targets[0]) if self._serving else []
        if not tools and self._serving and len(exchange.targets) > 1:
            exchange.fall_back = self._fall_back
        upstream = exchange.targets[0].upstream
        pauses = (upstream.pauses or upstream.resume is not None) and _may_pause(exchange)
        if not tools:
            return self._loop(exchange, []).answer() if pauses else self._inner.answer(exchange)
        return self._answer(exchange, tools)

    async def offer_for_count(self, exchange: Exchange) -> None:
        """A step before tokens are counted: with functions in place of the tools that the gateway runs. Those
        of MCP servers are not known without a connection: they are not counted."""
        settings = exchange.job.settings
        if settings is not self._settings:
            self._adopt(settings)
        tools = self._lacking(exchange, exchange.targets[0]) if self._serving else []
        for tool in tools:
            runner = self._serving[tool.kind]
            session = None if runner.connects else await runner.open(exchange, tool)
            if session is not None:
                offered = session.offer(exchange.request())
                placed = [offered.functions if each is tool else (each,) for each in offered.request.tools]
                exchange.rewrite(
                    msgspec.structs.replace(offered.request, tools=tuple(chain.from_iterable(placed)))
                )

    def _adopt(self, settings: Settings) -> None:
        self._settings, self._native = settings, {}
        self._serving = {kind: runner for kind, runner in self._runners.items() if runner.serves(settings)}

    def _fall_back(self, exchange: Exchange, place: int) -> Coroutine[Any, Any, None] | None:
        """A target has failed: the next one may not be able to read what the first can, nor run the tools."""
        tools = self._lacking_at(exchange, exchange.targets[place])
        if not tools:
            return None
        exchange.targets, exchange.fall_back = exchange.targets[place:], None
        return self._answer(exchange, tools)

    def _lacking_at(self, exchange: Exchange, target: Target) -> list[HostedTool]:
        """The same for a fallback, with earlier turns converted for it."""
        if exchange.job.settings is not self._settings:
            self._adopt(exchange.job.settings)  # others may have been loaded meanwhile
        self._rebuild(exchange, target)
        return self._lacking(exchange, target)

    def _lacking(self, exchange: Exchange, target: Target) -> list[HostedTool]:
        """The tools of a request that a target does not run, and one of the runners does."""
        job = exchange.job
        passes = target.plain and target.dialect == job.dialect
        if passes and (target.limits.hosted_tools or not _may_declare(job)):
            return []  # unchanged
        policy = job.policy or target.losses or job.settings.losses
        if policy in ("strict", "as-is") or not job.context.emulates:
            return []
        try:
            request = exchange.request()
        except RequestError:
            return []  # reported by the code that parses it
        choice = request.tool_choice
        if choice is not None and choice.mode == "none":
            return []
        lacking = []
        for tool in request.tools:
            if type(tool) is HostedTool and tool.kind in self._serving and not self._is_native(target, tool):
                lacking.append(tool)
        return lacking

    def _is_native(self, target: Target, tool: HostedTool) -> bool:
        """Whether the provider runs a tool, in this dialect or in another that it speaks."""
        server = tool.server
        form = None if server is None else (server.approval, server.is_narrowed)
        key = (target.name, target.dialect, tool.kind, tool.native.dialect, form)
        known = self._native.get(key)
        if known is None:
            if len(self._native) >= MAX_NATIVE:  # model names come from clients
                self._native.clear()
            known = self._native[key] = any(_takes(each, tool) for each in (target, *target.others))
        return known

    async def _answer(self, exchange: Exchange, tools: list[HostedTool]) -> None:
        running = await self._opened(exchange, tools)
        if not running and not _may_pause(exchange):
            await self._inner.answer(exchange)
            return
        await self._loop(exchange, running).answer()

    def _loop(self, exchange: Exchange, running: list[_Running]) -> _Loop:
        return _Loop(
            exchange,
            running,
            self._inner,
            lacking=self._lacking_at,
            open=self._opened,
            ask=self._ask,
            keep=self._keep,
            count=self._count,
        )

    async def _opened(self, exchange: Exchange, tools: list[HostedTool]) -> list[_Running]:
        running, runners = [], self._serving
        if exchange.job.stream and any(runners[tool.kind].connects for tool in tools):
            exchange.open_stream()  # the client waits meanwhile
        for tool in sorted(tools, key=lambda tool: tool.kind == _SEARCHES_TOOLS):
            session = await runners[tool.kind].open(exchange, tool)
            if session is not None:
                running.append(_Running(tool, session, runners[tool.kind].name))
        return running


def _may_pause(exchange: Exchange) -> bool:
    """Whether an answer may come that pauses, which the client's dialect cannot express: the gateway has it
    continued then. Only for a single answer: several would pause at different places."""
    job, target = exchange.job, exchange.targets[0]
    upstream = target.upstream
    if upstream.resume is not None:
        knows_it = job.dialect == target.dialect
    else:
        knows_it = job.surface.client.pauses or not upstream.pauses
    if knows_it or not job.emulates:
        return False
    try:
        request = exchange.request()
    except RequestError:
        return False  # reported by the code that parses it
    policy = job.policy or target.losses or job.settings.losses
    if policy in ("strict", "as-is") or (request.sampling.candidates or 1) > 1:
        return False
    return upstream.resume is not None or any(type(tool) is HostedTool for tool in request.tools)


def _may_declare(job: Job) -> bool:
    """Whether a body has a mark of a hosted tool in its declarations. In a large one these are separate from
    the conversation."""
    members = job.outline.members
    for member, marks in job.surface.client.hosted.tool_marks.items():
        if member in members:
            start, end = members[member]
            for mark in marks:
                if job.body.find(mark, start, end) >= 0:
                    return True
    return False


def _takes(target: Target, tool: HostedTool) -> bool:
    """Whether a request with only this tool keeps it."""
    asked = Request(target.model, (Message("user", (Text("?"),)),), tools=(tool,), max_tokens=1)
    try:
        planned = plan(
            asked,
            source=tool.native.dialect,
            target=target.dialect,
            model=target.model,
            provider=target.provider.name,
            fitter=target.fitter,
        )
        rendered = target.codec.render_request(planned.upstream, planned.context)
    except WireglotError:
        return False
    return not any(
        loss.feature in ("hosted_tool", "tool.deferred") and loss.action == "dropped"
        for loss in (*planned.losses, *rendered.losses)
    )


class _Loop:
    """One request, from its first round to its last."""

    def __init__(
        self,
        exchange: Exchange,
        running: list[_Running],
        inner: Answerer,
        *,
        lacking: Callable[[Exchange, Target], list[HostedTool]],
        open: Callable[[Exchange, list[HostedTool]], Awaitable[list[_Running]]],
        ask: AskRound,
        keep: Keep,
        count: CountHostedCall,
    ) -> None:
        """`lacking`: the tools that a fallback does not run. `open`: opens sessions for some."""
        self._exchange = exchange
        self._lacking = lacking
        self._open = open
        self._running = running
        self._inner = inner
        self._ask = ask
        self._keep = keep
        self._count = count
        self._form = exchange.job.surface.client.hosted
        self._own = copy(exchange)
        """The exchange in which the client's request is sent: the relay fills it."""
        self._own.fall_back = self._fall_back
        self._first: Round
        self._answer: OneAnswer
        self._owners: dict[str, _Running] = {}
        """By the names that the model knows, of all functions that it was ever offered."""
        self._turns: tuple[Message, ...] = ()
        """The turns of the rounds so far."""
        self._resumes: Message | None = None
        """The message that has a paused answer continued (`UpstreamSide.resume`)."""
        self._unsent: tuple[Part, ...] = ()
        """The content of rounds that are continued so: no turn contains it yet."""
        self._max_tokens: int | None = None
        """Of the last round."""
        self._content: list[Part] = []
        """The content of the whole answer."""
        self._ran: list[RanCall] = []
        self._ran_upstream: list[RanCall] = []
        """Calls that the provider has run itself."""
        self._paused = 0
        """How often the answer paused and was continued."""
        self._pauses = _may_pause(exchange)
        self._usage: Usage | None = None
        self._until = time.monotonic() + MAX_SECONDS
        self._uses = self._form.max_calls(exchange.request())

    async def answer(self) -> None:
        exchange, own = self._exchange, self._own
        asked = exchange.request()
        losses = [self._loss(each) for each in self._running]
        if (asked.sampling.candidates or 1) > 1:
            losses.append(_ONE_ANSWER)
        own.foreseen = exchange.foreseen + exchange.located(tuple(losses), asked)
        if exchange.job.stream:
            own.ending = Ending(account=exchange.ending.account)
            own.open_stream()
            exchange.client, own.client = own.client, None
        self._answer = OneAnswer(exchange)
        exchange.feeder = self._answer
        try:
            for number in range(MAX_ROUNDS + 1):
                round = self._round(number)
                await (self._ask_further(round) if number else self._ask_first(round))
                if not await self._goes_on(round, is_last=number == MAX_ROUNDS):
                    return
        finally:
            if own.client is not None:
                own.client.close()
            # They reference each other: this frees them without the garbage collector.
            own.client = own.feeder = own.fall_back = None

    def _loss(self, running: _Running) -> Loss:
        place = self._exchange.request().tools.index(running.tool)
        return Loss(
            f"$.tools[{place}]", "hosted_tool", "emulated", f"{running.tool.kind} run by {running.name}"
        )

    # The request of a round.

    def _round(self, number: int) -> Round:
        asked = self._exchange.request()
        messages = asked.messages + self._turns
        if self._resumes is None:
            self._max_tokens = _remaining(asked, self._usage)
        else:
            messages += (self._resumes,)  # to the same request, with the same limit
        request = msgspec.structs.replace(
            asked,
            messages=messages,
            max_tokens=self._max_tokens,
            sampling=msgspec.structs.replace(asked.sampling, candidates=None),
        )
        offers = number < MAX_ROUNDS and time.monotonic() < self._until
        placed: dict[int, tuple[Tool, ...]] = {}
        for each in self._running:
            offered = each.session.offer(request)
            request = offered.request
            if not each.shown:
                each.shown = True
                self._open_with(offered)
            functions = placed[id(each.tool)] = self._owned(each, offered.functions)
            parts = [functions if tool is each.tool else (tool,) for tool in request.tools]
            request = msgspec.structs.replace(request, tools=tuple(chain.from_iterable(parts)))
        tools = list(request.tools)
        choice = self._choice(request.tool_choice, placed, is_first=not number)
        if not offers:
            others = [tool for tool in tools if tool_name(tool) not in self._owners]
            # Some providers refuse calls in a history without tools.
            tools, choice = (others, choice) if others else (tools, ToolChoice("none"))
        request = msgspec.structs.replace(request, tools=tuple(tools), tool_choice=choice)
        return Round(self._answer, request, frozenset(self._owners))

    def _open_with(self, offered: Offered) -> None:
        """Show what was done before the first round, before the answer."""
        answer, form = self._answer, self._form
        events: list[Event] = []
        if offered.listing is not None:
            events += form.mcp.list_tools(offered.listing, answer.parts)
        for ran in offered.ran:
            assert ran.call is not None
            events += form.announce(ran.call, answer.parts + _count_parts(events))
            events += form.report(ran, answer.parts + _count_parts(events))
        answer.opening += events
        answer.parts += _count_parts(events)
        self._content += _parts_of(events)
        self._ran += offered.ran

    def _owned(self, running: _Running, functions: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """The functions under names that no other tool has."""
        named = []
        taken = {tool.name for tool in self._exchange.request().tools if type(tool) is Tool}
        taken.update(name for name, owner in self._owners.items() if owner is not running)
        for function in functions:
            name = function_name(function.name, taken)
            if name != function.name:
                running.renamed[name] = function.name
                function = msgspec.structs.replace(function, name=name)
            self._owners[name] = running
            named.append(function)
        return tuple(named)

    def _choice(
        self, choice: ToolChoice | None, placed: dict[int, tuple[Tool, ...]], *, is_first: bool
    ) -> ToolChoice | None:
        """The choice in terms of the functions. A forced tool has been called after the first round; a choice
        among several tools stays."""
        if choice is not None and not is_first and choice.mode == "required":
            if len(choice.only) + len(choice.hosted) < 2:
                return ToolChoice("auto")
            choice = msgspec.structs.replace(choice, mode="auto", extra=None)
        return self._narrowed(choice, placed) if choice is not None and choice.narrows else choice

    def _narrowed(self, choice: ToolChoice, placed: dict[int, tuple[Tool, ...]]) -> ToolChoice:
        """A choice among some tools, with the functions of a hosted tool in its place."""
        only, hosted = list(choice.only), choice.hosted
        for each in self._running:
            chosen = [one for one in hosted if one.names(each.tool)]
            if chosen or tool_name(each.tool) in only:
                only = [name for name in only if name != tool_name(each.tool)]
                named = tuple(f"__{one.tool}" if one.tool else "" for one in chosen) or ("",)
                only += [tool.name for tool in placed[id(each.tool)] if tool.name.endswith(named)]
                hosted = tuple(one for one in hosted if one not in chosen)
        if (tuple(only), hosted) == (choice.only, choice.hosted):
            return choice
        return ToolChoice(choice.mode, tuple(only), hosted=hosted)

    async def _ask_first(self, round: Round) -> None:
        exchange, own = self._exchange, self._own
        ending = exchange.ending
        own.ending = ending.of_one_round()
        own.reply = RoundReply(exchange)
        self._first = round
        round.begin(own)
        try:
            await self._inner.answer(own)
        finally:
            ending.completed = own.ending.completed
            attempt = exchange.attempt
            attempt.losses, attempt.returned_headers = own.attempt.losses, own.attempt.returned_headers

    def _fall_back(self, own: Exchange, place: int) -> Coroutine[Any, Any, None] | None:
        """A target has failed in the first round: the next one may run fewer of the tools."""
        exchange, before = self._exchange, self._exchange.request()
        lacking = self._lacking(exchange, own.targets[place])
        more = [tool for tool in lacking if all(each.tool is not tool for each in self._running)]
        if not more and exchange.request() is before:
            return None
        return self._ask_next(more, place)

    async def _ask_next(self, tools: list[HostedTool], place: int) -> None:
        own = self._own
        added = await self._open(self._exchange, tools)
        self._running = sorted(self._running + added, key=lambda each: each.tool.kind == _SEARCHES_TOOLS)
        asked = self._exchange.request()
        own.foreseen += self._exchange.located(tuple(map(self._loss, added)), asked)
        own.targets = own.targets[place:]
        self._first.ask_again(own, self._round(0))
        await self._inner.answer(own)

    async def _ask_further(self, round: Round) -> None:
        job = self._exchange.job
        incoming = Incoming(job.settings, job.head, job.asked, job.caller)
        round.targets = self._targets()
        reply, within = RoundReply(self._exchange), self._exchange.record.id
        await self._ask(incoming, job.body, reply, within, OPERATION, round)
        if round.problem is not None and self._answer.failed is None:
            raise round.problem

    def _targets(self) -> tuple[Target, ...]:
        """The target that answered the first round, and those after it: reasoning state and caches are
        theirs. A paused answer is continued only where such tools run."""
        record, targets = self._exchange.record, self._own.targets
        for place, target in enumerate(targets):
            if (target.provider.name, target.model) == (record.provider, record.upstream_model):
                targets = targets[place:]
                break
        if not self._paused:
            return targets
        first, *others = targets
        if self._resumes is not None:
            return (first,)
        return (first, *(each for each in others if each.upstream.pauses and each.limits.hosted_tools))

    # The result of a round.

    async def _goes_on(self, round: Round, *, is_last: bool) -> bool:
        """Whether another round follows. If not, the answer is complete."""
        result = round.result() if self._answer.failed is None else None
        if result is None:
            self._break_off(round)
            return False
        kept = result.kept
        self._usage = added(self._usage, result.usage) if self._usage is not None else result.usage
        self._ran_upstream += self._run_upstream(result.finish, kept)
        if not is_last and self._may_run(result):
            await self._run(result)
        if not result.brought:
            for event in result.held_events():
                self._answer.show([event])
        self._content += result.shown_content(quotes=self._form.quotes)
        if result.is_answered:
            content, self._unsent, self._resumes = self._unsent + kept.content, (), None
            self._turns += (Message("assistant", self._named(content)), Message("user", result.results()))
            return True
        if self._pauses and not is_last and kept.stop.reason == "paused" and self._continues(kept):
            return True
        await self._finish(msgspec.structs.replace(result.finish, stop=result.stop), kept)
        return False

    def _may_run(self, result: RoundResult) -> bool:
        """Whether the calls of a round are run. Not next to calls of the client's own tools if its dialect
        cannot return their results: the model calls again."""
        calls = result.writer.calls
        if not calls or result.kept.stop.reason not in RUN_AT:
            return False
        kinds = {self._owners[call.name].tool.kind for call in calls.values()}
        return not result.calls_others or kinds <= self._form.carried

    def _continues(self, kept: Response) -> bool:
        """Whether a paused answer can be continued. A token that comes twice leads nowhere."""
        resume = self._targets()[0].upstream.resume
        if resume is None:
            self._turns += (Message("assistant", self._named(self._native(kept.content))),)
        else:
            resumes = resume(kept)
            if resumes is None or resumes == self._resumes:
                return False
            self._resumes = resumes
            self._unsent += kept.content
        self._paused += 1
        return True

    def _named(self, content: tuple[Part, ...]) -> tuple[Part, ...]:
        """Thoughts without a signature get the name of their minter: they are only sent back to it."""
        target = self._targets()[0]
        minter = Origin(target.surface.family, target.provider.name, target.model)
        return tuple(
            msgspec.structs.replace(part, minter=minter)
            if type(part) is Reasoning and part.signature is None
            else part
            for part in content
        )

    async def _run(self, result: RoundResult) -> None:
        """Run the calls of a round and show them, in the order in which the model wrote everything held
        back."""
        writer = result.writer
        async with asyncio.TaskGroup() as group:
            hosted: dict[int, tuple[HostedCall, asyncio.Task[HostedResult]]] = {}
            for number, (index, call) in enumerate(writer.calls.items()):
                running = self._owners[call.name]
                own = msgspec.structs.replace(call, name=running.renamed.get(call.name, call.name))
                shown = running.session.call(own, f"{RUN_HERE}{secrets.token_hex(_ID_BYTES)}")
                hosted[index] = (shown, group.create_task(self._result(running, shown, number)))
            for entry in writer.held:
                if not isinstance(entry, int):
                    self._answer.show([writer.moved(entry)])
                    continue
                shown, task = hosted[entry]
                events = self._form.announce(shown, self._answer.parts)
                self._answer.show(events)
                ran = RanCall(shown.id, shown, await task)
                more = self._form.report(ran, self._answer.parts)
                self._answer.show(more)
                self._ran.append(ran)
                self._answer.sources += ran.result.sources if ran.result is not None else ()
                result.brought[writer.calls[entry].id] = ran, _parts_of([*events, *more])

    async def _result(self, running: _Running, call: HostedCall, number: int) -> HostedResult:
        if self._uses is not None and len(self._ran) + number >= self._uses:
            return HostedResult(error="max_uses_exceeded", text="No more calls of tools are allowed.")
        if number >= _MAX_CALLS_AT_ONCE:
            return HostedResult(error="too_many_requests", text="Too many calls at once: call it again.")
        outcome = "client_abort"
        try:
            result = await running.session.run(call)
            outcome = "pending" if call.pending else result.error or "ok"
        finally:
            self._count(running.tool.kind, running.session.backend, outcome)
        return result

    def _native(self, content: Iterable[Part]) -> tuple[Part, ...]:
        """The content without parts that were made for the client from tools that the provider ran."""
        family = self._exchange.job.surface.family
        return tuple(part for part in content if type(part) is not Foreign or part.dialect != family)

    def _run_upstream(self, finish: Finish, kept: Response) -> Iterator[RanCall]:
        """The calls of one round that the provider ran itself: as the client is shown them, or as the
        provider reports them if the client's dialect has no parts for them."""
        surface = self._exchange.job.surface
        if not surface.client.hosted.marks:
            surface = self._targets()[0].surface
        form, calls = surface.client.hosted, dict[str, HostedCall]()
        for part in kept.content:
            ran = form.read(part) if type(part) is Foreign and part.dialect == surface.family else None
            if ran is None:
                continue
            if ran.call is not None:
                calls[ran.id] = ran.call
            if ran.result is not None and ran.id in calls:
                yield RanCall(ran.id, calls[ran.id], ran.result)
        for query, sources in form.found(finish.extra if finish.extra is not None else kept.extra):
            call = HostedCall("web_search", "", input={"query": query})
            yield RanCall("", call, HostedResult(sources=sources))

    async def _finish(self, finish: Finish, last: Response) -> None:
        exchange, answer = self._exchange, self._answer
        # Other values of an end are about its own round.
        rounds = bool(self._turns or self._paused)
        extra, whole_extra = (None, None) if rounds else (finish.extra, last.extra)
        finish = msgspec.structs.replace(finish, usage=self._usage, extra=extra)
        ran = self._ran_upstream + self._ran
        if ran and (self._ran or rounds):  # the end of a single round has its own
            finish = self._form.finish(finish, ran)
        if self._ran:
            exchange.record.noted(_summary(self._ran))
            exchange.record.stopped(finish.stop.reason)
        if self._paused:
            exchange.record.stopped(finish.stop.reason)
            self._declare((continued(self._paused),))
        whole = msgspec.structs.replace(
            last, content=tuple(self._content), stop=finish.stop, usage=finish.usage, extra=whole_extra
        )
        client = exchange.client
        if client is not None:
            await self._keep(exchange, whole)
            data = answer.written([finish])
            self._declare(tuple(answer.losses))
            client.write(data, last=True)
            client.end()
            return
        assert answer.folding is not None
        answer.folding.add([finish])
        response = answer.folding.response()
        if response.extra is None and not rounds:
            response = msgspec.structs.replace(response, extra=answer.extra)
        context = answer.context or exchange.job.context
        rendered = exchange.codec.render_response(response, context, exchange.request())
        self._declare(rendered.losses)
        await self._keep(exchange, whole)
        if exchange.unstored:
            rendered = exchange.codec.render_response(response, context, exchange.request())
        exchange.reply.send(200, [JSON, *self._own.headers()], encode(rendered.value))

    def _declare(self, losses: tuple[Loss, ...]) -> None:
        if losses:
            located = answer_located(self._exchange.codec.places, losses)
            self._exchange.record.lost(located)
            if self._exchange.client is None:
                self._own.attempt.losses += located

    def _break_off(self, round: Round) -> None:
        """The round has no end. The error has been shown, or there is no one to show it to."""
        exchange, failed = self._exchange, self._answer.failed
        if failed is not None and round.problem is not None:
            exchange.record.failed(failed)
        if exchange.client is not None:
            exchange.client.end()


def _summary(ran: list[RanCall]) -> str:
    failed = sum(each.result is not None and bool(each.result.error) for each in ran)
    return f"tools run by the gateway: {len(ran)} calls" + (f", {failed} failed" if failed else "")


def _remaining(asked: Request, used: Usage | None) -> int | None:
    """The tokens left for the answer; at least as many as a round may use for thinking."""
    if asked.max_tokens is None or used is None:
        return asked.max_tokens
    least = min(asked.max_tokens, (asked.thinking.budget or 0) + 1)
    return max(least, asked.max_tokens - used.total_output)


def _count_parts(events: list[Event]) -> int:
    return sum(type(event) is PartStart for event in events)


def _parts_of(events: list[Event]) -> tuple[Foreign, ...]:
    return tuple(event.part for event in events if type(event) is PartStart and type(event.part) is Foreign)
