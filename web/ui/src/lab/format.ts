/** bytes shows an amount of memory or of data. */
export function bytes(n: number): string {
  if (n >= 1_000_000) return `${(n / 1_000_000).toFixed(1)} MB`;
  return n >= 1000 ? `${Math.round(n / 1000)} kB` : `${n} B`;
}

/** grouped shows a large number with thin separators: 200,000. */
export const grouped = (n: number): string => n.toLocaleString("en-US");

/** short shows a number with at most three digits after the point, and without zeros at its end. */
export const short = (x: number): string => String(Math.round(x * 1000) / 1000);
