/**
 * shown returns a text in which everything invisible, and everything that changes the
 * direction or the lines of what follows, is written as its number: a name must not be
 * able to look like another, or to change what is beside it.
 */
export const shown = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}\u115f\u1160\u3164\uffa0]/gu, (c) => {
    const point = c.codePointAt(0) ?? 0;
    return `\\u{${point.toString(16)}}`;
  });

const numbers = new Intl.NumberFormat("en-US");
const rates = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

export const count = (n: number | bigint): string => numbers.format(n);

/** rate writes a number per second, or a dash for what is not known. */
export const rate = (n: number | undefined): string =>
  n === undefined ? "–" : n >= 1000 ? numbers.format(Math.round(n)) : rates.format(n);

/** plural writes a number and what it counts. */
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

/** bytes writes a size in units of 1,000. */
export function bytes(n: number | undefined): string {
  if (n === undefined || n === 0) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (n >= 999.5 && unit < units.length - 1) {
    n /= 1000;
    unit++;
  }
  return `${n < 10 && unit > 0 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

/** age writes a time in ms in at most two units, rounded down. */
export function age(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86_400)];
  if (h === 0) return m < 10 ? two(m, "min", s % 60, "s") : `${m} min`;
  if (d === 0) return two(h, "h", m % 60, "min");
  return two(d, "d", h % 24, "h");
}

const two = (a: number, unit: string, b: number, rest: string): string => (b === 0 ? `${a} ${unit}` : `${a} ${unit} ${b} ${rest}`);

/** span writes how long something took: as age does, but short times in tenths of a second. */
export const span = (ms: number): string => (ms >= 0 && ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : age(ms));

/** latency writes a time in microseconds. */
export function latency(us: number | undefined): string {
  if (us === undefined) return "–";
  if (us < 1000) return `${us} µs`;
  const ms = us / 1000;
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const scale: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, "µs": 0.001, us: 0.001, ns: 0.000_001 };

/** duration reads what the server writes for a duration, such as "1h2m0.5s", in ms. */
export function duration(text: string | undefined): number {
  let ms = 0;
  for (const [, n, unit] of (text ?? "").matchAll(/([0-9.]+)(h|ms|m|s|µs|us|ns)/g)) {
    ms += Number(n) * (scale[unit ?? ""] ?? 0);
  }
  return ms;
}

/** clock writes a moment as the time of day, with the date if it is not today's. */
export function clock(at: string | number, now = Date.now()): string {
  const moment = new Date(at);
  const time = moment.toLocaleTimeString("en-GB");
  return moment.toDateString() === new Date(now).toDateString() ? time : `${moment.toISOString().slice(0, 10)} ${time}`;
}

/** who names the program behind a session: "report 4711 on db1". */
export function who(of: { program: string; pid: number; host: string; session_id?: string }): string {
  const program = of.program === "" ? "" : of.pid > 0 ? `${shown(of.program)} ${of.pid}` : shown(of.program);
  const host = of.host === "" ? "" : `on ${shown(of.host)}`;
  const named = [program, host].filter((part) => part !== "").join(" ");
  return named || (of.session_id ? `session ${of.session_id.slice(0, 10)}…` : "an unnamed program");
}
