import type { TraceRecord } from "../engine/protocol";
import type { Words } from "../draw/paint";
import type { Run } from "./run";
import type { Texts } from "./texts.svelte";

/** Kinds of records that are named beside the line of their process. */
const named = new Set([
  "acquire", "cancel", "leave", "campaign", "resign", "crash", "pause", "resume", "restart", "jump", "corrupt",
  "suspect", "trust", "fail", "rejoin", "neighbor", "elected", "decided", "propose", "partition", "heal",
]);

/** Effects that are named there too. */
const news = new Set(["deny", "revoke", "elect", "suspect", "trust", "fail", "rejoin", "deliver", "decide"]);

type Effect = NonNullable<TraceRecord["effects"]>[number] & { peer?: number; word?: string; value?: number };

/** besideText is what people want to see of a record besides messages and entries. */
export function besideText(record: TraceRecord & { peer?: number; word?: string; value?: number }): string[] {
  const texts: string[] = [];
  if (record.timer) texts.push(record.timer);
  if (named.has(record.kind)) texts.push(told(record.kind, record));
  if (record.note && record.kind !== "drop" && record.kind !== "duplicate") texts.push(record.note);
  for (const effect of (record.effects ?? []) as Effect[]) {
    if (effect.internal || effect.cut || !news.has(effect.kind)) continue;
    texts.push(effect.msg ? `deliver ${effect.msg.text}` : told(effect.kind, effect));
  }
  return texts;
}

function told(kind: string, of: { peer?: number; word?: string; value?: number }): string {
  return [kind, of.peer, of.word ?? (of.value ? String(of.value) : undefined)].filter((part) => part !== undefined).join(" ");
}

/** wordsOf gives a picture the texts that are known so far. */
export function wordsOf(run: Run, texts: Texts): Words {
  const cache = new Map<number, string[]>();
  return {
    flight: (f) => flightText(run, texts, f),
    beside(record) {
      const text = texts.get(record);
      if (!text) return [];
      let found = cache.get(record);
      if (!found) cache.set(record, (found = besideText(text.record)));
      return found;
    },
    fence: (record) => texts.get(record)?.record.effects?.find((effect) => effect.kind === "grant" && !effect.internal && !effect.cut)?.fence ?? "",
    time: timeText(run.count > 0 ? (run.time[run.count - 1] ?? 0) : 0),
  };
}

/** flightText is a message with its fields, or its name while these are not known. */
export function flightText(run: Run, texts: Texts, f: number): string {
  const end = run.end[f] ?? 0;
  const sender = run.sender[f] ?? 0;
  const name = run.messageName(run.flightType[f] ?? 0);
  const arrived = end ? texts.get(end)?.record.msg : undefined;
  if (arrived?.name === name) return arrived.text;
  const to = run.labels[run.receiver[f] ?? 0];
  const sent = sender ? texts.get(sender)?.record.effects : undefined;
  return sent?.find((e) => e.msg?.name === name && (e.msg.to === undefined || e.msg.to === to))?.msg?.text ?? name;
}

const units = [
  { from: 10_000_000_000, unit: 1_000_000_000, name: "s" },
  { from: 100_000, unit: 1_000_000, name: "ms" },
  { from: 1_000, unit: 1_000, name: "µs" },
  { from: 0, unit: 1, name: "ns" },
];

/** timeText returns a function that shows times of a run that lasts so long. A run that has only begun has ms. */
export function timeText(last: number): (nanoseconds: number) => string {
  const { unit, name } = units.find((u) => (last || 100_000) >= u.from) ?? { unit: 1, name: "ns" };
  return (t) => `${Math.trunc((t / unit) * 1000) / 1000} ${name}`;
}
