// Plays the streams of an exchange: it is above the answers, which grow as they did.
import { useEffect, useRef } from "preact/hooks";
import type { Exchange } from "../exchange";
import { duration } from "../format";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 10];

export function Player({ exchange }: { exchange: Exchange }) {
  const row = useRef<HTMLDivElement>(null);
  const client = exchange.clientEvents.value;
  const upstream = exchange.upstreamEvents.value;
  const at = exchange.at.value;
  const playing = exchange.playing.value;
  const speed = exchange.speed.value;
  const end = exchange.end.value;
  const now = useRef(end);
  now.current = at ?? end;

  const play = (on: boolean) => {
    exchange.playing.value = on;
    // Those who start it by a key may be far from what it moves.
    const top = row.current?.getBoundingClientRect().top ?? 0;
    if (on && (top < 0 || top > innerHeight * 0.6)) row.current?.scrollIntoView({ block: "start" });
  };
  const step = (by: 1 | -1) => {
    exchange.playing.value = false;
    let found: number | undefined;
    for (const { ms } of [...client, ...upstream])
      if ((ms - now.current) * by > 0.05 && (found === undefined || (found - ms) * by > 0)) found = ms;
    exchange.scrub(found ?? (by > 0 ? null : 0));
  };

  useEffect(() => {
    if (!playing) return;
    let last = performance.now();
    let position = now.current >= end ? 0 : now.current;
    let frame = 0;
    const draw = (time: number) => {
      position += (time - last) * speed;
      last = time;
      if (position >= end) {
        exchange.scrub(null);
        exchange.playing.value = false;
        return;
      }
      exchange.scrub(position);
      frame = requestAnimationFrame(draw);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, end]);

  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const element = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(element.tagName)) return;
      if (event.key === "p") play(!exchange.playing.value);
      else if (event.key === "]") step(1);
      else if (event.key === "[") step(-1);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });

  return (
    <div class="player" ref={row} role="group" aria-label="Play the answers">
      <button type="button" class="main" onClick={() => play(!playing)} title="p">
        {playing ? "❚❚ Pause" : "▶ Play"}
      </button>
      <button type="button" aria-label="One event back" title="[" onClick={() => step(-1)}>‹</button>
      <button type="button" aria-label="One event forward" title="]" onClick={() => step(1)}>›</button>
      <label>
        <span class="unseen">Speed</span>
        <select value={String(speed)} onChange={(event) => { exchange.speed.value = Number(event.currentTarget.value); }}>
          {SPEEDS.map((each) => (
            <option key={each} value={String(each)}>
              {each}×
            </option>
          ))}
        </select>
      </label>
      <output class="mono">{duration(at ?? end)}</output>
    </div>
  );
}
