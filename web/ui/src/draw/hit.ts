import { distance } from "./geometry";
import type { Shape } from "./paint";

/**
 * hit returns what is at a place of the picture: the nearest record, else the nearest arrow or
 * the arrow to which the nearest text belongs. Targets are larger for fingers.
 */
export function hit(shapes: readonly Shape[], x: number, y: number, touch: boolean): Shape | undefined {
  let best: Shape | undefined;
  let least = touch ? 24 : 13;
  for (const shape of shapes) {
    if (!("record" in shape)) continue;
    const d = Math.hypot(shape.x - x, shape.y - y);
    if (d < least) [best, least] = [shape, d];
  }
  if (best) return best;
  least = touch ? 20 : 8;
  for (const shape of shapes) {
    if (!("flight" in shape)) continue;
    const d = distance(shape, x, y);
    if (d < least) [best, least] = [shape.of ?? shape, d];
  }
  return best;
}
