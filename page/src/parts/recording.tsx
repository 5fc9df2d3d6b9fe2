// Bodies are recorded for some minutes, by a click: what is not recorded has a row, and no panes.
import { useEffect, useState } from "preact/hooks";
import { get, message, send, session } from "../api";
import { clock, size } from "../format";
import { every } from "../polling";
import type { Fleet, Recording } from "../types";

export function RecordingButton() {
  const [state, setState] = useState<Recording | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let on = true;
    const load = () => get<Recording>("/recording").then((found) => on && setState(found)).catch(() => undefined);
    const leave = every(15_000, load);
    return () => {
      on = false;
      leave();
    };
  }, []);
  const may = session.value?.access !== "key";
  // Its place, until it is known what it says.
  if (!state) return may ? <button type="button" class="recording" disabled><span class="dot" aria-hidden="true" /> Record bodies</button> : null;
  const recording = state.until !== null && state.until * 1000 > Date.now();
  const always = state.mode === "all" && !recording;
  const set = async (minutes: number) => {
    try {
      setProblem("");
      setState(await send<Recording>("POST", "/recording", { minutes }));
    } catch (caught) {
      setProblem(message(caught));
    }
  };
  const title = `Bodies kept: ${size(state.kept_bytes ?? 0)}${state.dropped ? `; not recorded because the queue was full: ${state.dropped}` : ""}`;
  if (always)
    return (
      <>
        <FleetNote fleet={state.fleet} />
        <span class="recording on" title={title}>
          <span class="dot" aria-hidden="true" /> Records all bodies
        </span>
      </>
    );
  return (
    <>
      {state.memory ? (
        <span class="faint memory" title={`While no key is required, the bodies of the last exchanges are in memory: ${state.memory.exchanges} of them, ${size(state.memory.bytes)} of at most ${size(state.memory.most_bytes)}. They go with the process, and are never written. Record bodies to keep them for longer; [trace] memory_bytes = 0 turns it off.`}>
          last bodies in memory
        </span>
      ) : null}
      <FleetNote fleet={state.fleet} />
      {recording ? (
        <button type="button" class="recording on" title={title} disabled={!may} onClick={() => void set(0)}>
          <span class="dot" aria-hidden="true" /> Recording until {clock(state.until ?? 0).slice(0, 5)} · stop
        </button>
      ) : may ? (
        <button type="button" class="recording" title={`Record the bodies of all exchanges for 15 minutes. ${title}`} onClick={() => void set(15)}>
          <span class="dot" aria-hidden="true" /> Record bodies
        </button>
      ) : null}
      {problem || state.unreached ? <span class="problem" role="alert">{problem || state.unreached}</span> : null}
    </>
  );
}

/** What is not to be seen of other machines, and why. */
function FleetNote({ fleet }: { fleet: Fleet | null | undefined }) {
  if (!fleet) return null;
  if (fleet.trouble) return <span class="problem" role="status">The fleet's store is away, so other machines' new exchanges are missing: {fleet.trouble}</span>;
  const unreported = fleet.unreported ? `${fleet.unreported} exchanges were not reported by their machines` : "";
  return <span class="faint" title={unreported || undefined}>{fleet.machines > 1 ? `${fleet.machines} machines` : ""}{unreported ? " · not all" : ""}</span>;
}
