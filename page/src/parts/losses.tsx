// The losses of one exchange by feature: new ones first, what is usual for its client and provider folded.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api";
import { lossesTold, plural, target } from "../format";
import { type FeatureGroup, type Habits, type LossHabit, groupLosses, habitOf, habitsOf } from "../habits";
import { every } from "../polling";
import { setQuery } from "../route";
import type { Row, TracedLoss } from "../types";
import { Grade } from "./small";

const HABITS_MS = 30_000;
const habits = signal<Habits>(habitsOf([]));
let loadedAt = 0;

async function loadHabits(): Promise<void> {
  if (Date.now() - loadedAt < HABITS_MS - 1000) return;
  loadedAt = Date.now();
  try {
    habits.value = habitsOf((await get<{ pairs: LossHabit[] }>("/losses")).pairs);
  } catch {
    loadedAt = 0; // without them nothing is usual, and nothing new
  }
}

/** What is usually lost, looked up again while a view shows it. */
export function useHabits(): Habits {
  useEffect(() => every(HABITS_MS, loadHabits), []);
  return habits.value;
}

export function LossTable({ losses, row, recorded }: { losses: TracedLoss[]; row: Row; recorded: boolean }) {
  const known = useHabits();
  const groups = useMemo(() => groupLosses(losses, habitOf(known, row)), [losses, known, row.client, row.provider]);
  if (!losses.length && !lossesTold(row)) return <p class="faint">{(row.state ?? "running") === "running" ? "Losses are shown when it ends." : "It ended before anything could be lost."}</p>;
  if (!losses.length)
    return (
      <p>
        <span class="grade grade-kept">✓ nothing was lost</span>
      </p>
    );
  const usual = groups.filter((each) => each.rarity === "usual");
  const others = groups.filter((each) => each.rarity !== "usual");
  return (
    <div class="losses">
      {others.length ? <Groups groups={others} recorded={recorded} /> : <p class="faint">Nothing but what is usually lost.</p>}
      {usual.length ? (
        <details class="usual">
          <summary>
            {plural(usual.length, "feature")} usual for {row.client || "this client"} with {row.provider || target(row)}:{" "}
            {usual.map((each) => (
              <span key={each.feature} class="usual-feature"><Grade grade={each.grade}>{each.feature}</Grade></span>
            ))}
          </summary>
          <Groups groups={usual} recorded={recorded} />
        </details>
      ) : null}
    </div>
  );
}

function Groups({ groups, recorded }: { groups: FeatureGroup[]; recorded: boolean }) {
  return (
    <div class="scroll-x" tabIndex={0} role="group" aria-label="Losses">
      <table class="stacked">
        <thead>
          <tr>
            <th>Grade</th>
            <th>Feature</th>
            <th>What happened</th>
            <th>Where</th>
            <th>Why</th>
          </tr>
        </thead>
        {groups.map((group) => <Group key={group.feature} group={group} recorded={recorded} />)}
      </table>
    </div>
  );
}

const PLACES_AT_FIRST = 3;

function Group({ group, recorded }: { group: FeatureGroup; recorded: boolean }) {
  const [all, setAll] = useState(false);
  const { losses } = group;
  const shown = all || losses.length <= PLACES_AT_FIRST + 1 ? losses : losses.slice(0, PLACES_AT_FIRST);
  return (
    <tbody>
      {shown.map((loss, index) => (
        <tr key={index} class={index ? "again" : undefined}>
          <td><Grade grade={loss.grade} /></td>
          <td data-label="Feature">
            {loss.feature}
            {!index && group.rarity === "new" ? <span class="tag accent" title="not lost before by this client with this provider, or hardly ever">new</span> : null}
          </td>
          <td data-label="What happened">{loss.action}</td>
          <td data-label="Where">
            {loss.pointer && recorded ? (
              <button type="button" class="quiet path" onClick={() => setQuery({ sel: `client-${loss.document === "request" ? "request" : "answer"}:${loss.pointer}`, pane: loss.document === "request" ? "" : "client-answer" })}>
                {loss.path}
              </button>
            ) : (
              <code>{loss.path}</code>
            )}
            {loss.document === "request" ? "" : " of the answer"}
          </td>
          <td data-label="Why">{loss.detail}</td>
        </tr>
      ))}
      {shown.length < losses.length ? (
        <tr class="again">
          <td />
          <td colSpan={4}>
            <button type="button" class="quiet" onClick={() => setAll(true)}>
              {group.feature} at {plural(losses.length - shown.length, "more place")}
            </button>
          </td>
        </tr>
      ) : null}
    </tbody>
  );
}
