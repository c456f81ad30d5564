import data from "./tokens.json";

/** A colour on light and on dark paper. */
export interface Colour {
  light: string;
  dark: string;
}

export type Palette = Record<string, Colour>;

export type Theme = "light" | "dark";

/** The measures of a space-time diagram, in pixels. */
export const measures = data.measures;

/** messageColours is how many types of messages have a colour of their own. */
const messageColours = 6;

/** The dash patterns of message types: a colour never stands alone. */
const dashes: readonly (readonly number[])[] = [[], [8, 3], [2, 3], [10, 3, 2, 3], [5, 2], [14, 4]];

/** colours returns the palette of package trace for one theme. */
export function colours(theme: Theme): Record<string, string> {
  const palette = data.colours as Palette;
  return Object.fromEntries(Object.entries(palette).map(([name, c]) => [name, c[theme]]));
}

/** messageColour names the colour of the i-th type of message in a run. */
export const messageColour = (i: number): string => `m${(i % messageColours) + 1}`;

/** messageDash returns the dash pattern of the i-th type of message in a run. */
export const messageDash = (i: number): readonly number[] => dashes[i % dashes.length] ?? [];
