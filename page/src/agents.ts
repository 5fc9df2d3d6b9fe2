// The agents of one conversation: the main one, and under it those that it started.
import { tokensOf } from "./format";
import type { Row } from "./types";

export interface Agent {
  /** "" for the main one. */
  id: string;
  name: string;
  turns: number;
  tokens: number;
  cost: number;
  agents: Agent[];
}

/** The main agent with all others below it. Rows come the oldest first. */
export function agentTree(rows: Row[]): Agent {
  const main: Agent = { id: "", name: "main", turns: 0, tokens: 0, cost: 0, agents: [] };
  const known = new Map<string, Agent>();
  const parents = new Map<string, string>();
  for (const row of rows) {
    const id = row.agent_id ?? "";
    let agent = id ? known.get(id) : main;
    if (!agent) {
      agent = { id, name: row.agent_name || "sub-agent", turns: 0, tokens: 0, cost: 0, agents: [] };
      known.set(id, agent);
      parents.set(id, row.parent_agent_id ?? "");
    }
    agent.turns += 1;
    agent.tokens += tokensOf(row.tokens) ?? 0;
    agent.cost += row.cost ?? 0;
  }
  for (const [id, agent] of known) (known.get(parentOf(id, parents)) ?? main).agents.push(agent);
  return main;
}

/** "" where it is the main agent, is not known, or would be its own ancestor: a client may name any id. */
function parentOf(id: string, parents: Map<string, string>): string {
  const parent = parents.get(id) ?? "";
  const passed = new Set<string>();
  for (let above = parent; above && !passed.has(above); above = parents.get(above) ?? "") {
    if (above === id) return "";
    passed.add(above);
  }
  return parent;
}
