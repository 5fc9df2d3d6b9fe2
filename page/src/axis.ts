// What is written at the axes of a chart.

/** 1, 2, 5, 10, 20 and so on: steps between things that are counted. */
export const STEPS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();

/** Pixels that the longest of some labels needs. */
export const axisWidth = (labels: readonly string[] | null): number => 18 + 6.8 * Math.max(3, ...(labels ?? []).map((each) => each.length));

export function moment(at: number, span: number): string {
  const date = new Date(at * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  if (span < 600) return `${clock}:${two(date.getSeconds())}`;
  return span < 4 * 86_400 && (span < 86_400 || clock !== "00:00") ? clock : day;
}
