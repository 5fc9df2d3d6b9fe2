"""Thinking settings in the form of each model family: never more than the client requested, unless the model
has no lower setting. The catalog defines what a model accepts; the figures here follow common practice."""

from __future__ import annotations

import msgspec

from wireglot_core.dialects.surface import Surface
from wireglot_core.ir.content import Extra, Reasoning, ToolResult
from wireglot_core.ir.loss import Action, Feature, Loss, losses_of_extra
from wireglot_core.ir.request import EFFORTS, Effort, Request, Thinking
from wireglot_core.providers.fit.fitting import FitTarget, Fitting
from wireglot_core.providers.limits import Limits

_BUDGETS: dict[Effort, int] = {
    "none": 0,
    "minimal": 512,
    "low": 1_024,
    "medium": 8_192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 32_768,
}

_BUDGET_STEPS: tuple[tuple[int, Effort], ...] = (
    (0, "none"),
    (512, "minimal"),
    (1_999, "low"),
    (8_192, "medium"),
    (24_576, "high"),
    (47_999, "xhigh"),
)
"""The largest budget of each effort. The budget sent for an effort is within its own range."""


def effort_of_budget(budget: int) -> Effort:
    return next((effort for upto, effort in _BUDGET_STEPS if budget <= upto), "max")


def nearest_effort(effort: Effort, allowed: tuple[Effort, ...]) -> Effort:
    """The highest effort that is not above `effort`, or the lowest one if all are. `none` is only chosen for
    `none` itself: thinking is never switched off this way."""
    if effort in allowed or not allowed:
        return effort
    steps = sorted((step for step in allowed if step != "none"), key=EFFORTS.index)
    wanted = EFFORTS.index(effort)
    return next((step for step in reversed(steps) if EFFORTS.index(step) <= wanted), steps[0])


_FEATURES: dict[str, Feature] = {
    "mode": "thinking.mode",
    "effort": "thinking.effort",
    "budget": "thinking.budget",
    "display": "thinking.display",
}


def _lose(losses: list[Loss], field: str, action: Action, detail: str) -> None:
    losses.append(Loss(f"$.thinking.{field}", _FEATURES[field], action, detail))


def fit_thinking(request: Request, fitting: Fitting) -> Request:
    """Converts the thinking settings to the only form this model accepts."""
    thinking, limits, losses, foreign = request.thinking, fitting.limits, fitting.losses, fitting.foreign
    if limits.thinking is None or (not foreign and _may_stay(thinking, limits)):
        return request
    before = len(losses)
    shown = foreign and _is_shown_by_default(thinking, fitting.target.client)
    if shown:
        thinking = msgspec.structs.replace(thinking, display="summary")
    wish = msgspec.structs.replace(thinking, mode="off", budget=None) if thinking.budget == 0 else thinking
    fitted = _FITTERS[limits.thinking](wish, limits, losses)
    if fitted is not thinking:
        _declare_unreported(thinking, fitted, {loss.path for loss in losses[before:]}, losses)
    if limits.thinking == "adaptive" and foreign and thinking.mode is None:
        fitted = _switched_on(fitted, losses)
    if fitted.budget is not None:
        fitted = _clamped(fitted, thinking, limits, request.max_tokens or limits.max_tokens_default, losses)
    if fitted.display is not None or shown:
        fitted = _fit_display(fitted, fitting, by_default=shown)
    fitted = _spelled(fitted, thinking, fitting)
    if fitted == request.thinking:
        return request
    return msgspec.structs.replace(request, thinking=fitted)


def _spelled(fitted: Thinking, asked: Thinking, fitting: Fitting) -> Thinking:
    """The setting in the field that this endpoint reads."""
    limits, losses = fitting.limits, fitting.losses
    spelling = _spelling(fitted, fitting.target)
    if spelling is not None:
        return _by_switch(fitted, spelling, losses)
    if _says_nothing(fitted) and not _says_nothing(asked):
        # With no other setting, the kept spelling would still write an empty `thinking` field.
        losses_of_extra(fitted.extra, "", "$.thinking", losses)
        return Thinking()
    if limits.thinking == "effort" and limits.thinking_own != "switch":
        return _by_effort(fitted, losses)
    return fitted


def _switched_on(fitted: Thinking, losses: list[Loss]) -> Thinking:
    """In other dialects models think by default: only an effort, or the wish to see thoughts, is given."""
    if fitted.effort is None and fitted.display != "summary":
        return fitted
    said = "an effort alone does" if fitted.effort is not None else "requesting visible thoughts does"
    detail = f"{said} not make this model think: thinking with a summary was requested"
    _lose(losses, "mode", "invented", detail)
    return msgspec.structs.replace(fitted, mode="auto", display=fitted.display or "summary")


def _fit_display(fitted: Thinking, fitting: Fitting, *, by_default: bool) -> Thinking:
    """`by_default`: the client did not ask for thoughts, but its dialect shows them."""
    if fitted.display is not None and _has_no_display(fitting):
        if not by_default:
            _lose(fitting.losses, "display", "dropped", "this model has no such switch")
    elif not by_default or not _is_shown_unasked(fitted, fitting.target.server):
        return fitted
    return msgspec.structs.replace(fitted, display=None)


def _has_no_display(fitting: Fitting) -> bool:
    """Whether this model cannot be asked to show its thoughts."""
    limits = fitting.limits
    if limits.thinking != "effort":
        return limits.thinking in ("none", "toggle", "fixed")
    return not fitting.target.server.reasoning.shows_by_effort or set(limits.efforts) <= {"none"}


def _is_shown_by_default(thinking: Thinking, surface: Surface | None) -> bool:
    """Whether the request asks for thinking that its dialect shows although it does not say so."""
    if surface is None or thinking.display is not None or thinking.mode == "off" or thinking.effort == "none":
        return False
    shows = surface.reasoning.shows
    if thinking.budget is not None:
        return thinking.budget != 0 and "on" in shows
    return thinking.mode in shows or (thinking.effort is not None and "effort" in shows)


def _is_shown_unasked(fitted: Thinking, server: Surface) -> bool:
    unsaid = msgspec.structs.replace(fitted, display=None)
    return server.reasoning.shows_unasked and _is_shown_by_default(unsaid, server)


def _declare_unreported(asked: Thinking, fitted: Thinking, reported: set[str], losses: list[Loss]) -> None:
    """An effort and a budget may be set together, or with `off`: one is used, and the other is reported."""
    off = "off" in (asked.mode, fitted.mode) or "none" in (asked.effort, fitted.effort)
    path = "$.thinking.effort"
    if asked.effort is not None and fitted.effort != asked.effort and path not in reported:
        if asked.effort == "none" and (fitted.effort is None or "$.thinking.mode" in reported):
            pass  # `off` in another spelling, which was applied or reported
        elif fitted.effort is not None and asked.mode != "off":
            _said(losses, asked.effort, fitted.effort)
        else:
            detail = "thinking is off" if off else "the budget takes precedence"
            _lose(losses, "effort", "dropped", detail)
    path = "$.thinking.budget"
    if asked.budget is not None and fitted.budget != asked.budget and path not in reported:
        detail = "thinking is off" if off else "the effort takes precedence"
        _lose(losses, "budget", "dropped", detail)


def _control(thinking: Thinking) -> str | None:
    """The field in which the client set it, in a dialect that has several."""
    return thinking.extra.form.get("control") if thinking.extra is not None else None


def _may_stay(thinking: Thinking, limits: Limits) -> bool:
    """Whether a setting in the endpoint's own dialect is sent as the client wrote it."""
    control = _control(thinking)
    if control == "chat_template_kwargs":
        return True  # a flag of the server's own, which no limit is about
    if limits.thinking_own == "switch":
        return control == "thinking" and _is_switch_of(thinking, limits)
    if limits.thinking_own != "keep":
        return limits.thinking_own == "guess"
    if thinking.effort == "none" and "none" not in limits.efforts:
        return False
    off = thinking.mode == "off" or thinking.effort == "none"
    return not off or (limits.thinking_off and limits.thinking != "fixed")


def _is_switch_of(thinking: Thinking, limits: Limits) -> bool:
    if thinking.budget is not None:
        return False
    if thinking.mode == "off":
        return limits.thinking != "fixed"
    return thinking.effort is None or (limits.thinking == "effort" and thinking.effort in limits.efforts)


def _says_nothing(thinking: Thinking) -> bool:
    return (thinking.mode, thinking.effort, thinking.budget, thinking.display) == (None, None, None, None)


def stop_thinking_in_loop(request: Request, losses: list[Loss]) -> Request:
    """Switches thinking off for this request, if the thinking of the running tool loop was lost."""
    if request.thinking == Thinking() or not request.messages:
        return request
    if not any(type(part) is ToolResult for part in request.messages[-1].content):
        return request
    caller = next((message for message in reversed(request.messages) if message.role == "assistant"), None)
    if caller is None or type(caller.content[0]) is Reasoning:
        return request
    detail = "the thinking of the running tool calls is lost; without it this model cannot continue thinking"
    _lose(losses, "mode", "dropped", detail)
    return msgspec.structs.replace(request, thinking=Thinking("off", extra=request.thinking.extra))


def thinks(asked: Thinking, fitted: Thinking, limits: Limits) -> bool:
    """Whether the model will think, as far as the request and its default show."""
    if fitted.mode == "off" or fitted.effort == "none" or asked.mode == "off":
        return False
    if fitted.mode is not None or fitted.effort is not None or fitted.budget is not None:
        return True
    return asked.mode is not None or limits.thinks_by_default


def _spelling(fitted: Thinking, target: FitTarget) -> Extra | None:
    """The field that switches thinking, if it is not the dialect's usual one."""
    limits = target.limits
    if target.has_variants and fitted.mode is not None and limits.thinking in ("toggle", "effort"):
        return Extra(target.server.family, form={"control": limits.thinking_switch or "thinking"})
    if fitted.mode == "off" and limits.between_tools and not limits.thinking_off:
        return target.server.reasoning.between_tools
    return None


def _by_switch(thinking: Thinking, spelling: Extra, losses: list[Loss]) -> Thinking:
    extra = thinking.extra
    if (
        extra is not None
        and extra.dialect == spelling.dialect
        and spelling.form.items() <= extra.form.items()
        and spelling.fields.items() <= extra.fields.items()
    ):
        return thinking  # the client used this field itself
    losses_of_extra(extra, "", "$.thinking", losses)
    return msgspec.structs.replace(thinking, extra=spelling)


def _by_effort(thinking: Thinking, losses: list[Loss]) -> Thinking:
    """Removes the objects that other Chat servers read (`thinking`, `reasoning`)."""
    if _control(thinking) is None:
        return thinking
    losses_of_extra(thinking.extra, "", "$.thinking", losses)
    return msgspec.structs.replace(thinking, extra=None)


def effective_effort(thinking: Thinking) -> Effort | None:
    """The effective effort, however it was set. Off is off, whatever the effort next to it."""
    if thinking.mode == "off":
        return "none"
    if thinking.effort is not None:
        return thinking.effort
    if thinking.budget is not None and thinking.budget >= 0:
        return effort_of_budget(thinking.budget)
    return None


def _said(losses: list[Loss], was: Effort | None, now: Effort | None) -> None:
    if was != now:
        _lose(losses, "effort", "approximated", f"{was} became {now}")


def _as_effort(thinking: Thinking, limits: Limits, losses: list[Loss]) -> Thinking:
    effort = effective_effort(thinking)
    if effort is None:
        if thinking.mode is not None:
            action: Action = "emulated" if limits.thinks_by_default else "approximated"
            _lose(losses, "mode", action, "left to the model's default")
        return Thinking(display=thinking.display, extra=thinking.extra)
    if effort == "none" and "none" not in limits.efforts and limits.thinking_switch and limits.thinking_off:
        return Thinking("off", display=thinking.display, extra=thinking.extra)
    if effort not in limits.efforts and set(limits.efforts) <= {"none"}:
        why = "this model cannot be switched off" if effort == "none" else "this model has no efforts"
        return _silenced(thinking, losses, why)
    fitted = nearest_effort(effort, limits.efforts)
    if thinking.budget is not None:
        _lose(losses, "budget", "approximated", f"{thinking.budget} tokens became {fitted}")
    elif thinking.mode == "off":
        if thinking.effort not in (None, "none"):
            _lose(losses, "effort", "dropped", "thinking is off")
        if fitted != "none":
            _lose(losses, "mode", "approximated", f"off became {fitted}")
    else:
        if thinking.mode is not None:
            # A model that has efforts thinks where one is named.
            action = "approximated" if "none" in (effort, fitted) else "emulated"
            detail = f"{thinking.mode}: expressed by the effort alone"
            _lose(losses, "mode", action, detail)
        _said(losses, effort, fitted)
    return Thinking(effort=fitted, display=thinking.display, extra=thinking.extra)


def _as_adaptive(thinking: Thinking, limits: Limits, losses: list[Loss]) -> Thinking:
    off = thinking.mode == "off" or thinking.effort == "none"
    if off and (limits.thinking_off or limits.between_tools):
        # Claude Opus 5 and Sonnet 5.5 refuse to switch thinking off at a higher effort than this.
        upto = tuple(step for step in limits.efforts if EFFORTS.index(step) <= EFFORTS.index("high"))
        effort = None if thinking.effort in (None, "none") else nearest_effort(thinking.effort, upto)
        if thinking.effort != "none":
            _said(losses, thinking.effort, effort)
        return Thinking("off", effort, extra=thinking.extra)
    if off:
        _lose(losses, "mode", "approximated", "cannot be switched off: lowest effort")
        lowest = nearest_effort("none", limits.efforts)
        return Thinking("auto", lowest, display=thinking.display, extra=thinking.extra)
    effort = effective_effort(thinking)
    fitted = None if effort is None else nearest_effort(effort, limits.efforts)
    if thinking.budget is not None:
        _lose(losses, "budget", "approximated", f"{thinking.budget} tokens became {fitted}")
    else:
        _said(losses, effort, fitted)
    mode = thinking.mode if thinking.budget is None else "auto"
    display = thinking.display
    if thinking.mode == "on" and display is None:
        # Thinking by a budget is shown; adaptive thinking is not, from Opus 4.7 on, unless the request says
        # so.
        display = "summary"
        detail = "adaptive thinking is not shown by default: a summary was requested"
        _lose(losses, "display", "approximated", detail)
    return Thinking("auto" if mode == "on" else mode, fitted, display=display, extra=thinking.extra)


def _as_budget(thinking: Thinking, limits: Limits, losses: list[Loss]) -> Thinking:
    if thinking.mode == "off" or thinking.effort == "none":
        if limits.thinking_off:
            return Thinking("off", display=thinking.display, extra=thinking.extra)
        _lose(losses, "mode", "approximated", "cannot be switched off: least budget")
        return Thinking("on", budget=limits.budget_min or 128, display=thinking.display, extra=thinking.extra)
    if thinking.budget is not None:
        if thinking.effort is not None:
            _lose(losses, "effort", "dropped", "the budget takes precedence")
        return Thinking("on", budget=thinking.budget, display=thinking.display, extra=thinking.extra)
    if thinking.effort is None:
        if thinking.mode is None or not limits.budget_min:
            return thinking
        detail = "this model requires a token budget for thinking: a medium one was sent"
        _lose(losses, "budget", "invented", detail)
        return Thinking("on", budget=_BUDGETS["medium"], display=thinking.display, extra=thinking.extra)
    budget = max(_BUDGETS[thinking.effort], limits.budget_min)
    _lose(losses, "effort", "approximated", f"{thinking.effort} became {budget} tokens")
    return Thinking("on", budget=budget, display=thinking.display, extra=thinking.extra)


def _as_level(thinking: Thinking, limits: Limits, losses: list[Loss]) -> Thinking:
    if thinking.budget is not None and thinking.budget > 0 and thinking.effort is None:
        level = nearest_effort(effort_of_budget(thinking.budget), limits.efforts)
        _lose(losses, "budget", "approximated", f"{thinking.budget} tokens became {level}")
        return Thinking(effort=level, display=thinking.display, extra=thinking.extra)
    return _as_effort(msgspec.structs.replace(thinking, budget=None), limits, losses)


def _as_toggle(thinking: Thinking, limits: Limits, losses: list[Loss]) -> Thinking:
    off = thinking.mode == "off" or thinking.effort == "none"
    if thinking.effort not in (None, "none"):
        _lose(losses, "effort", "approximated", "thinking of this model is either on or off")
    if thinking.budget is not None:
        _lose(losses, "budget", "dropped", "this model takes no budget")
    if off and not limits.thinking_off:
        _lose(losses, "mode", "dropped", "this model cannot be switched off")
        return Thinking(display=thinking.display, extra=thinking.extra)
    return Thinking("off" if off else "on", display=thinking.display, extra=thinking.extra)


def _as_fixed(thinking: Thinking, limits: Limits, losses: list[Loss]) -> Thinking:
    if thinking.mode in ("on", "auto"):
        thinking = msgspec.structs.replace(thinking, mode=None)  # the model thinks anyway: nothing to request
    return _silenced(thinking, losses, "this model always thinks, and decides how much")


def _as_none(thinking: Thinking, limits: Limits, losses: list[Loss]) -> Thinking:
    if thinking.mode == "off" and thinking.effort in (None, "none"):
        return Thinking(display=thinking.display, extra=thinking.extra)
    return _silenced(thinking, losses, "this model does not think")


def _silenced(thinking: Thinking, losses: list[Loss], why: str) -> Thinking:
    if thinking.effort is not None:
        _lose(losses, "effort", "dropped", why)
    if thinking.budget is not None:
        _lose(losses, "budget", "dropped", why)
    elif thinking.mode is not None:
        _lose(losses, "mode", "dropped", why)
    return Thinking(display=thinking.display, extra=thinking.extra)


def _clamped(
    fitted: Thinking, asked: Thinking, limits: Limits, max_tokens: int, losses: list[Loss]
) -> Thinking:
    """The budget within the model's range. A changed budget is reported only if the client named the number:
    one that represents an effort is reported as that effort."""
    budget = fitted.budget
    if budget is None or budget < 0:
        return fitted
    if limits.budget_max:
        budget = min(budget, limits.budget_max)
    if limits.budget_min:
        budget = max(budget, limits.budget_min)
    if limits.max_tokens_default and limits.budget_min and 0 < max_tokens <= limits.budget_min:
        detail = f"{max_tokens} tokens are less than the minimum budget, {limits.budget_min}"
        _lose(losses, "mode", "dropped", detail)
        return Thinking("off", extra=fitted.extra)
    if limits.max_tokens_default and max_tokens and budget >= max_tokens:
        budget = max(limits.budget_min, max_tokens - 1)
    if budget == fitted.budget:
        return fitted
    if asked.budget is not None:
        _lose(losses, "budget", "approximated", f"{asked.budget} became {budget} tokens")
    return msgspec.structs.replace(fitted, budget=budget)


_FITTERS = {
    "adaptive": _as_adaptive,
    "budget": _as_budget,
    "effort": _as_effort,
    "level": _as_level,
    "toggle": _as_toggle,
    "fixed": _as_fixed,
    "none": _as_none,
}
