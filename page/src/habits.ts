// Losses by exception: what a client always loses with a provider is no news, what it never lost before is.
import type { Row, TracedLoss } from "./types";

/** Of one client with one provider: in how many exchanges each feature was lost. */
export interface LossHabit {
  client: string;
  provider: string;
  exchanges: number;
  features: Record<string, number>;
}

export type Rarity = "new" | "usual" | "";

const LEAST_EXCHANGES = 5;
const MOST_NEW = 2;
const USUAL_SHARE = 0.2;

export type Habits = ReadonlyMap<string, LossHabit>;

const pair = (client: string, provider: string) => `${client}\u0000${provider}`;

export function habitsOf(pairs: readonly LossHabit[]): Habits {
  return new Map(pairs.map((each) => [pair(each.client, each.provider), each]));
}

export const habitOf = (habits: Habits, row: Row): LossHabit | undefined => habits.get(pair(row.client ?? "", row.provider ?? ""));

/** "" while too little is known. */
export function rarityOf(habit: LossHabit | undefined, feature: string): Rarity {
  if (!habit || habit.exchanges < LEAST_EXCHANGES) return "";
  const times = habit.features[feature] ?? 0;
  if (times <= MOST_NEW && times / habit.exchanges < USUAL_SHARE) return "new";
  return times / habit.exchanges >= USUAL_SHARE ? "usual" : "";
}

export interface RowLosses {
  fresh: string[];
  usual: string[];
  other: string[];
}

export function lossesByRarity(row: Row, habits: Habits): RowLosses {
  const habit = habitOf(habits, row);
  const found: RowLosses = { fresh: [], usual: [], other: [] };
  for (const feature of row.features ?? []) {
    const rarity = rarityOf(habit, feature);
    (rarity === "new" ? found.fresh : rarity === "usual" ? found.usual : found.other).push(feature);
  }
  return found;
}

export interface FeatureLosses {
  feature: string;
  times: number;
  /** Usual only where it is so for everyone who loses it. */
  rarity: Rarity;
  who: string[];
}

/** All features, new ones first, then by how often. */
export function lossesByFeature(habits: Habits): FeatureLosses[] {
  const found = new Map<string, FeatureLosses & { all: Rarity[] }>();
  for (const habit of habits.values())
    for (const [feature, times] of Object.entries(habit.features)) {
      const entry = found.get(feature) ?? { feature, times: 0, rarity: "" as Rarity, who: [], all: [] };
      entry.times += times;
      entry.who.push(`${habit.client || "unknown"} → ${habit.provider}: ${times} of ${habit.exchanges}`);
      entry.all.push(rarityOf(habit, feature));
      found.set(feature, entry);
    }
  return [...found.values()]
    .map(({ all, ...entry }) => ({ ...entry, rarity: all.includes("new") ? ("new" as const) : all.every((each) => each === "usual") ? ("usual" as const) : ("" as const) }))
    .sort((a, b) => RANKS[a.rarity] - RANKS[b.rarity] || b.times - a.times || (a.feature < b.feature ? -1 : 1));
}

export interface FeatureGroup {
  feature: string;
  /** Its worst. */
  grade: string;
  rarity: Rarity;
  losses: TracedLoss[];
}

const GRADES = ["serious", "degraded", "harmless"];
const RANKS: Record<Rarity, number> = { new: 0, "": 1, usual: 2 };

/** The losses of one exchange by feature: new ones first, then the worst. */
export function groupLosses(losses: readonly TracedLoss[], habit: LossHabit | undefined): FeatureGroup[] {
  const found = new Map<string, FeatureGroup>();
  for (const loss of losses) {
    const group = found.get(loss.feature) ?? { feature: loss.feature, grade: loss.grade, rarity: rarityOf(habit, loss.feature), losses: [] };
    if (GRADES.indexOf(loss.grade) < GRADES.indexOf(group.grade)) group.grade = loss.grade;
    group.losses.push(loss);
    found.set(loss.feature, group);
  }
  return [...found.values()].sort((a, b) => RANKS[a.rarity] - RANKS[b.rarity] || GRADES.indexOf(a.grade) - GRADES.indexOf(b.grade));
}
