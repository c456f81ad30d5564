import type { Topology } from "../engine/protocol";

export interface Point {
  x: number;
  y: number;
}

/** Places is where a map shows the processes, and the lines of the topology between them. */
export interface Places {
  points: Point[];
  edges: [number, number][];
}

/** placesOf puts a tree in levels, what has a centre around it, and all others on a circle. */
export function placesOf(topology: Topology | undefined, n: number, size: number, margin: number): Places {
  if (topology?.parent?.length === n) return tree(topology.parent, size, margin);
  const centre = topology?.coordinator;
  if (centre !== undefined && n > 2) {
    const outer = ring(n - 1, size, margin);
    const points = Array.from({ length: n }, (_, rank) => (rank === centre ? { x: size / 2, y: size / 2 } : (outer[rank < centre ? rank : rank - 1] as Point)));
    return { points, edges: points.flatMap((_, rank): [number, number][] => (rank === centre ? [] : [[centre, rank]])) };
  }
  const next = topology?.successor;
  if (next?.length === n) {
    const order = around(next);
    const circle = ring(n, size, margin);
    const points = Array.from({ length: n }, (_, rank) => circle[Math.max(0, order.indexOf(rank))] as Point);
    return { points, edges: next.map((to, from) => [from, to]) };
  }
  return { points: ring(n, size, margin), edges: [] };
}

/** around follows the successors, so that a ring is drawn as one whatever its order. */
function around(next: readonly number[]): number[] {
  const order: number[] = [];
  for (let rank = 0; !order.includes(rank) && order.length < next.length; rank = next[rank] ?? 0) order.push(rank);
  for (let rank = 0; rank < next.length; rank++) if (!order.includes(rank)) order.push(rank);
  return order;
}

function ring(n: number, size: number, margin: number): Point[] {
  const radius = size / 2 - margin;
  return Array.from({ length: n }, (_, i) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2;
    return { x: size / 2 + radius * Math.cos(angle), y: size / 2 + radius * Math.sin(angle) };
  });
}

function tree(parent: readonly number[], size: number, margin: number): Places {
  const depth = parent.map((_, rank) => {
    let d = 0;
    for (let at = rank; (parent[at] ?? -1) >= 0 && d < parent.length; at = parent[at] ?? -1) d++;
    return d;
  });
  const deepest = Math.max(...depth, 1);
  // Leaves share the width; whoever has children stands in their middle.
  const x = new Array<number>(parent.length).fill(-1);
  let leaf = 0;
  const leaves = parent.filter((_, rank) => !parent.includes(rank)).length;
  const place = (rank: number): number => {
    const children = parent.flatMap((p, child) => (p === rank ? [child] : []));
    const at = children.length === 0 ? leaf++ / Math.max(1, leaves - 1) : children.map(place).reduce((a, b) => a + b, 0) / children.length;
    return (x[rank] = at);
  };
  for (const [rank, p] of parent.entries()) if (p < 0) place(rank);
  const room = size - 2 * margin;
  return {
    points: parent.map((_, rank) => ({ x: margin + (leaves === 1 ? 0.5 : Math.max(0, x[rank] ?? 0)) * room, y: margin + ((depth[rank] ?? 0) / deepest) * room })),
    edges: parent.flatMap((p, rank): [number, number][] => (p >= 0 ? [[rank, p]] : [])),
  };
}
