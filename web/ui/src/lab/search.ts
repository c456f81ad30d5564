import type { Broken, Check } from "../engine/protocol";
import type { Others } from "../url/codec";

/** The fields of a search that the screen offers. */
export interface Form {
  algorithm: string;
  n: number;
  entries: number;
  crashes: number;
  drops: number;
  duplicates: number;
  timers: string;
  /** MiB; 0: what the engine takes. */
  memory: number;
  unordered: boolean;
  liveness: boolean;
  reduce: boolean;
}

export const memories = [0, 16, 64, 256, 512, 1024, 2048];

export const timings = ["as-needed", "synchronous", "patient", "any", "never"];

/** formOf begins with the search that is known to find a mistake, else with a small one; the address wins. */
export function formOf(algorithm: string, broken: readonly Broken[], params: Others): Form {
  const known = broken.find((b) => b.name === algorithm)?.check;
  const given = new Map(params);
  const number = (name: string, otherwise: number) => {
    const value = given.get(name);
    return value !== undefined && /^\d{1,4}$/.test(value) ? Number(value) : otherwise;
  };
  const yes = (name: string, otherwise: boolean) => (given.has(name) ? given.get(name) === "1" : otherwise);
  const timers = given.get("timers") ?? known?.timers ?? "as-needed";
  return {
    algorithm,
    n: number("n", known?.n ?? 3),
    entries: number("entries", known?.entries ?? 1),
    crashes: number("crashes", known?.crashes ?? 0),
    drops: number("drops", known?.drops ?? 0),
    duplicates: number("duplicates", known?.duplicates ?? 0),
    timers: timings.includes(timers) ? timers : "as-needed",
    memory: memories.includes(number("memory", 0)) ? number("memory", 0) : 0,
    unordered: yes("unordered", known?.unordered ?? false),
    liveness: yes("liveness", known?.liveness ?? false),
    reduce: yes("reduce", known?.reduce ?? false),
  };
}

/** checkOf is the search that a form asks for. What the form does not offer is as in the known search. */
export function checkOf(form: Form, broken: readonly Broken[]): Check {
  const known = broken.find((b) => b.name === form.algorithm)?.check ?? {};
  const { memory, ...rest } = form;
  return { ...known, ...rest, ...(memory > 0 ? { memory: memory * 2 ** 20 } : {}) };
}

/** paramsOf is a form in an address: what differs from where the form begins. */
export function paramsOf(form: Form, broken: readonly Broken[]): Others {
  const begin = formOf(form.algorithm, broken, []);
  return (Object.keys(form) as (keyof Form)[])
    .filter((name) => name !== "algorithm" && form[name] !== begin[name])
    .map((name) => [name, typeof form[name] === "boolean" ? (form[name] ? "1" : "0") : String(form[name])] as const);
}
