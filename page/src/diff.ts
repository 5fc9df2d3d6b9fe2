// What differs between two texts, word by word (Myers' greedy algorithm), or line by line where words are too many.

export interface Piece {
  kind: "same" | "left" | "right";
  text: string;
}

const MOST_TOKENS = 4000;
const MOST_STEPS = 1500;
/** Beyond, two texts are compared as wholes. */
const MAX_LINES = 20_000;

function tokens(text: string, lines: boolean): string[] {
  return text.match(lines ? /[^\n]*\n|[^\n]+/g : /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

export function diff(left: string, right: string): Piece[] {
  if (left === right) return left ? [{ kind: "same", text: left }] : [];
  let lines = left.includes("\n") && left.length + right.length > 20_000;
  let a = tokens(left, lines);
  let b = tokens(right, lines);
  if (!lines && a.length + b.length > MOST_TOKENS) {
    lines = true;
    a = tokens(left, true);
    b = tokens(right, true);
  }
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const pieces: Piece[] = [];
  const push = (kind: Piece["kind"], text: string) => {
    const last = pieces.at(-1);
    if (!text) return;
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  push("same", a.slice(0, start).join(""));
  for (const piece of middle(a.slice(start, a.length - end), b.slice(start, b.length - end))) push(piece.kind, piece.text);
  push("same", end ? a.slice(-end).join("") : "");
  return pieces;
}

function middle(a: string[], b: string[]): Piece[] {
  const n = a.length;
  const m = b.length;
  const whole: Piece[] = [
    { kind: "left", text: a.join("") },
    { kind: "right", text: b.join("") },
  ];
  if (!n || !m || n + m > MAX_LINES) return whole;
  const most = Math.min(n + m, MOST_STEPS);
  const trail: Int32Array[] = [];
  const v = new Int32Array(2 * most + 2);
  const mid = most;
  for (let d = 0; d <= most; d++) {
    trail.push(v.slice());
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (v[mid + k - 1] ?? 0) < (v[mid + k + 1] ?? 0)) ? (v[mid + k + 1] ?? 0) : (v[mid + k - 1] ?? 0) + 1;
      let y = x - k;
      while (x < n && y < m && a[x] === b[y]) {
        x++;
        y++;
      }
      v[mid + k] = x;
      if (x >= n && y >= m) return walk(a, b, trail, mid, d);
    }
  }
  return whole;
}

function walk(a: string[], b: string[], trail: Int32Array[], mid: number, depth: number): Piece[] {
  const pieces: Piece[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = depth; d >= 0; d--) {
    const v = trail[d];
    if (!v) break;
    const k = x - y;
    const down = k === -d || (k !== d && (v[mid + k - 1] ?? 0) < (v[mid + k + 1] ?? 0));
    const before = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : (v[mid + before] ?? 0);
    const fromY = d === 0 ? 0 : fromX - before;
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      pieces.push({ kind: "same", text: a[x - 1] ?? "" });
      x--;
      y--;
    }
    if (d > 0) {
      if (down) pieces.push({ kind: "right", text: b[y - 1] ?? "" });
      else pieces.push({ kind: "left", text: a[x - 1] ?? "" });
    }
    x = fromX;
    y = fromY;
  }
  return pieces.reverse();
}

/** How alike two texts are, from 0 to 1. */
export function alike(pieces: Piece[]): number {
  let same = 0;
  let all = 0;
  for (const piece of pieces) {
    all += piece.text.length * (piece.kind === "same" ? 2 : 1);
    if (piece.kind === "same") same += piece.text.length * 2;
  }
  return all ? same / all : 1;
}
