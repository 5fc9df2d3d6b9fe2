// When what happened: the steps on the way, and every event of both streams, to scrub.
import { useMemo } from "preact/hooks";
import type { Exchange } from "../exchange";
import { duration } from "../format";
import type { Side } from "../links";
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
  const client = exchange.clientEvents.value;
  const upstream = exchange.upstreamEvents.value;
  const at = exchange.at.value;
  const lit = litTicks(exchange);
  const end = exchange.end.value;
  const x = (ms: number) => (Math.min(ms, end) / end) * WIDTH;
  // Not one for each of 20,000: no more than can be distinguished.
  const ticks = (events: StreamEvent[], y: number) => [...new Set(events.map((event) => Math.round(x(event.ms) * 2) / 2))].map((each) => `M${each} ${y}v10`).join("");
  const paths = useMemo(() => [ticks(upstream, 24), ticks(client, 40)] as const, [client, upstream, end]);
  const pace = exchange.pace.value;
  const until = exchange.hungUntil.value;
  const gaps = useMemo(() => gapsOf(pace, until), [pace, until]);
  const first = useMemo(() => firstWord(client.length ? client : upstream), [client, upstream]);

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
              <title>{`the provider sent nothing for ${duration(gap.to - gap.from)}`}</title>
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
              exchange.playing.value = false;
              exchange.scrub(Number(event.currentTarget.value));
            }}
          />
        ) : null}
      </div>
      <div class="timeline-words">
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
