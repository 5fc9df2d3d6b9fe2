// When what happened: the steps on the way, and every event of both streams, to play and to scrub.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Exchange } from "../exchange";
import { duration } from "../format";
import type { Side } from "../links";
import { setQuery } from "../route";
import { type StreamEvent, firstWord, gapsOf } from "../stream";

const WIDTH = 1000;

/** Moments of the event in focus and of its partners. */
function litTicks(exchange: Exchange): { client: number[]; upstream: number[] } {
  const focus = exchange.focus.value;
  const times = (side: Side, indexes: number[]) => indexes.flatMap((index) => exchange.eventsOf(side)[index]?.ms ?? []);
  const of = (side: Side) => (!focus ? [] : times(side, focus.side === side ? [focus.index] : exchange.focusPartners.value));
  return { client: of("client"), upstream: of("upstream") };
}

export function Timeline({ exchange }: { exchange: Exchange }) {
  const steps = exchange.trace.value?.steps ?? [];
  const total = exchange.row.value?.total_ms ?? 0;
  const client = exchange.clientEvents.value;
  const upstream = exchange.upstreamEvents.value;
  const at = exchange.at.value;
  const lit = litTicks(exchange);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const now = useRef(at ?? 0);
  const end = Math.max(total, steps.at(-1)?.ended_ms ?? 0, client.at(-1)?.ms ?? 0, upstream.at(-1)?.ms ?? 0, 1);
  const x = (ms: number) => (Math.min(ms, end) / end) * WIDTH;
  const ticks = (events: StreamEvent[], y: number) => events.map((event) => `M${x(event.ms).toFixed(1)} ${y}v10`).join("");
  const paths = useMemo(() => [ticks(upstream, 24), ticks(client, 40)] as const, [client, upstream, end]);
  const gaps = useMemo(() => gapsOf(upstream.length ? upstream : client), [client, upstream]);
  const first = useMemo(() => firstWord(client.length ? client : upstream), [client, upstream]);
  const moments = useMemo(() => [...new Set([...client, ...upstream].map((event) => event.ms))].sort((a, b) => a - b), [client, upstream]);
  now.current = at ?? end;

  const scrub = (ms: number | null) => setQuery({ t: ms === null || ms >= end ? "" : String(Math.round(ms * 10) / 10) }, true);

  useEffect(() => {
    if (!playing) return;
    let last = performance.now();
    let position = now.current >= end ? 0 : now.current;
    let frame = 0;
    const draw = (time: number) => {
      position += (time - last) * speed;
      last = time;
      if (position >= end) {
        scrub(null);
        setPlaying(false);
        return;
      }
      scrub(position);
      frame = requestAnimationFrame(draw);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, end]);

  const step = (by: 1 | -1) => {
    setPlaying(false);
    const found = by > 0 ? moments.find((ms) => ms > now.current + 0.05) : [...moments].reverse().find((ms) => ms < now.current - 0.05);
    scrub(found ?? (by > 0 ? null : 0));
  };
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const element = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(element.tagName)) return;
      if (event.key === "p") setPlaying((old) => !old);
      else if (event.key === "]") step(1);
      else if (event.key === "[") step(-1);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });

  const spent = new Map<string, number>();
  for (const each of steps) spent.set(each.name, (spent.get(each.name) ?? 0) + each.ended_ms - each.began_ms);
  const streams = client.length > 0 || upstream.length > 0;
  return (
    <section class="timeline card" aria-label="Timeline">
      <div class="timeline-plot">
        <svg viewBox={`0 0 ${WIDTH} 54`} preserveAspectRatio="none" role="img" aria-label={`Steps: ${steps.map((each) => `${each.name} ${duration(each.ended_ms - each.began_ms)}`).join(", ") || "not recorded"}. ${upstream.length} events from the provider, ${client.length} to the client.`}>
          {steps.map((each, index) => (
            <rect key={index} class={`step step-${each.name.replaceAll(/\W+/g, "-")}`} x={x(each.began_ms)} y="4" width={Math.max(1.5, x(each.ended_ms) - x(each.began_ms))} height="12" rx="2">
              <title>{`${each.name}: ${duration(each.ended_ms - each.began_ms)}`}</title>
            </rect>
          ))}
          {gaps.map((gap, index) => (
            <rect key={index} class="gap" x={x(gap.from)} y="22" width={x(gap.to) - x(gap.from)} height="30">
              <title>{`nothing came for ${duration(gap.to - gap.from)}`}</title>
            </rect>
          ))}
          <path class="ticks ticks-upstream" d={paths[0]} />
          <path class="ticks ticks-client" d={paths[1]} />
          <path
            class="ticks-lit"
            d={[
              ...lit.upstream.map((ms) => `M${x(ms).toFixed(1)} 22v12`),
              ...lit.client.map((ms) => `M${x(ms).toFixed(1)} 40v12`),
              ...lit.upstream.flatMap((ms) => lit.client.map((other) => `M${x(ms).toFixed(1)} 34L${x(other).toFixed(1)} 40`)),
            ].join("")}
          />
          {first !== null ? <path class="first" d={`M${x(first)} 20v34`} /> : null}
          {at !== null ? <path class="now" d={`M${x(at)} 0v54`} /> : null}
        </svg>
        {streams ? (
          <input
            type="range"
            class="scrub"
            aria-label="Time within the exchange"
            aria-valuetext={at === null ? `the end, ${duration(end)}` : duration(at)}
            min={0}
            max={end}
            step="any"
            value={at ?? end}
            onInput={(event) => {
              setPlaying(false);
              scrub(Number(event.currentTarget.value));
            }}
          />
        ) : null}
      </div>
      <div class="timeline-words">
        {streams ? (
          <span class="player">
            <button type="button" class="main" onClick={() => setPlaying(!playing)} title="p">
              {playing ? "❚❚ Pause" : "▶ Play"}
            </button>
            <button type="button" aria-label="One event back" title="[" onClick={() => step(-1)}>‹</button>
            <button type="button" aria-label="One event forward" title="]" onClick={() => step(1)}>›</button>
            <label>
              <span class="unseen">Speed</span>
              <select value={String(speed)} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
                {[0.1, 0.25, 0.5, 1, 2, 4, 10].map((each) => (
                  <option key={each} value={String(each)}>
                    {each}×
                  </option>
                ))}
              </select>
            </label>
            <output class="mono">{duration(at ?? end)}</output>
          </span>
        ) : null}
        <span class="legend">
          {[...spent].map(([name, ms]) => (
            <span key={name} class={`key key-${name.replaceAll(/\W+/g, "-")}`}>
              {name} {duration(ms)}
            </span>
          ))}
          {upstream.length ? <span class="key key-upstream">provider, {upstream.length} events</span> : null}
          {client.length ? <span class="key key-client">client, {client.length} events</span> : null}
          {first !== null ? <span class="key key-first">first token {duration(first)}</span> : null}
          {gaps[0] ? <span class="key key-gap">longest gap {duration(gaps[0].to - gaps[0].from)}</span> : null}
        </span>
      </div>
    </section>
  );
}
