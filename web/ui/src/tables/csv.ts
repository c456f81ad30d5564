import type { Figure } from "../engine/protocol";

/** csvOf writes figures as comma-separated values, one line each, as spreadsheets read them. */
export function csvOf(figures: readonly Figure[]): string {
  const head = ["algorithm", "n", "regime", "metric", "measured", "theory", "lower bound", "upper bound", "formula", "within"];
  const rows = figures.map((f) => [f.algorithm, f.n, f.regime, f.metric, f.measured, f.theory ?? "", f.bounds?.[0] ?? "", f.bounds?.[1] ?? "", f.formula, f.within ? "yes" : "no"]);
  return [head, ...rows].map((row) => row.map((cell) => quoted(String(cell))).join(",")).join("\r\n") + "\r\n";
}

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
