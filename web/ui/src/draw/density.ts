import { laneX, screenY } from "./geometry";
import { visible } from "./layout";
import type { Scene } from "./paint";

/** density shows how much happens where, for zooms at which nothing single can be seen. */
export function density(c: CanvasRenderingContext2D, scene: Scene, top: number, bottom: number): void {
  const { run, layout, geometry: g, colours, cursor } = scene;
  const lanes = run.labels.length;
  const rows = Math.ceil(g.height / 2);
  const counts = new Uint32Array(lanes * rows);
  const [from, to] = visible(layout.above, layout.below, top, bottom);
  let most = 1;
  for (let i = from; i < to; i++) {
    const row = Math.floor(screenY(g, layout.y[i] ?? 0) / 2);
    if (row < 0 || row >= rows) continue;
    const at = (run.process[i] ?? 0) * rows + row;
    counts[at] = (counts[at] ?? 0) + 1;
    most = Math.max(most, counts[at] ?? 0);
  }
  const present = cursor > 0 ? screenY(g, layout.y[cursor - 1] ?? 0) : 0;
  const width = Math.max(2, g.lane * 0.7);
  c.fillStyle = colours.m1 ?? "#888888";
  for (let rank = 0; rank < lanes; rank++) {
    const x = laneX(g, rank);
    for (let row = 0; row < rows; row++) {
      const n = counts[rank * rows + row] ?? 0;
      if (n === 0) continue;
      c.globalAlpha = (0.2 + (0.8 * n) / most) * (row * 2 <= present ? 1 : 0.3);
      c.fillRect(x - width / 2, row * 2, width, 2);
    }
  }
  c.globalAlpha = 1;
}
