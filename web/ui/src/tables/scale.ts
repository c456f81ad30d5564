/** A Scale puts values of a chart on pixels. */
export interface Scale {
  at(value: number): number;
  ticks: number[];
}

/** logScale covers the values between two pixels, equal factors at equal distances. */
export function logScale(values: readonly number[], from: number, to: number): Scale {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const [low, high] = least === most ? [least / 2, most * 2] : [least, most];
  return {
    at: (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low),
    ticks: ticksOf(low, high),
  };
}

/** linearScale covers the values and 0 between two pixels. */
export function linearScale(values: readonly number[], from: number, to: number): Scale {
  const most = Math.max(...values, Number.MIN_VALUE);
  const step = 10 ** Math.floor(Math.log10(most)) / (most / 10 ** Math.floor(Math.log10(most)) < 3 ? 4 : 1);
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
  return { at: (value) => from + ((to - from) * value) / most, ticks };
}

/** ticksOf are 1, 2 and 5 times powers of ten, or the powers alone if these are many. */
function ticksOf(low: number, high: number): number[] {
  const all: number[] = [];
  const wide = Math.log10(high / low) > 3;
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const digit of wide ? [1] : [1, 2, 5]) {
      const value = digit * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) all.push(value);
    }
  }
  return all;
}

/** apart moves places downwards and upwards until neighbours are a gap apart, and keeps their order. */
export function apart(places: readonly number[], gap: number, least: number, most: number): number[] {
  const order = places.map((_, i) => i).sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0));
  const moved = [...places];
  let last = least - gap;
  for (const i of order) last = moved[i] = Math.max(moved[i] ?? 0, last + gap);
  let next = most + gap;
  for (const i of order.reverse()) next = moved[i] = Math.min(moved[i] ?? 0, next - gap);
  return moved;
}
