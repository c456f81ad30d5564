import type { Segment } from "./geometry";

const cell = 5;
const textHeight = 12;

/**
 * Labels writes texts where there is room for them. It keeps a grid of what is taken;
 * a text without room is left out, never written over another.
 */
export class Labels {
  readonly #taken: Uint8Array;
  /** Which line runs through a cell: 0 none, 65535 several. */
  readonly #lines: Uint16Array;
  readonly #columns: number;
  readonly #rows: number;

  constructor(
    readonly c: CanvasRenderingContext2D,
    readonly paper: string,
    readonly size: { width: number; height: number },
  ) {
    this.#columns = Math.ceil(size.width / cell) + 1;
    this.#rows = Math.ceil(size.height / cell) + 1;
    this.#taken = new Uint8Array(this.#columns * this.#rows);
    this.#lines = new Uint16Array(this.#columns * this.#rows);
    c.textBaseline = "middle";
  }

  /** avoid takes a rectangle. */
  avoid(x: number, y: number, width: number, height: number): void {
    this.#cells(x, y, width, height, (at) => {
      this.#taken[at] = 1;
      return true;
    });
  }

  /** line notes the line with a number above 0: texts avoid it if they can. */
  line(s: Segment, number: number): void {
    const steps = Math.min(2000, Math.ceil(Math.hypot(s.x2 - s.x1, s.y2 - s.y1) / 4));
    for (let i = 0; i <= steps; i++) {
      const column = Math.floor((s.x1 + ((s.x2 - s.x1) * i) / steps) / cell);
      const row = Math.floor((s.y1 + ((s.y2 - s.y1) * i) / steps) / cell);
      if (column < 0 || row < 0 || column >= this.#columns || row >= this.#rows) continue;
      const at = row * this.#columns + column;
      const known = this.#lines[at] ?? 0;
      this.#lines[at] = known === 0 || known === number ? number : 65535;
    }
  }

  /** beside writes right or left of a line, at the first place that is free. */
  beside(text: string, x: number, y: number, edge: number, paint: string, alpha: number, room: number): void {
    const shown = this.#shorten(text, room);
    if (!shown) return;
    const width = this.c.measureText(shown).width;
    for (const strict of [true, false]) {
      for (const dy of [0, -12, 12, -22, 22]) {
        for (const left of [x + edge, x - edge - width]) {
          if (left < 2 || left + width > this.size.width - 2) continue;
          if (!this.#free(left, y + dy - textHeight / 2, width, textHeight, strict ? 0 : undefined)) continue;
          this.avoid(left - 2, y + dy - textHeight / 2, width + 4, textHeight);
          this.#write(shown, left, y + dy, paint, alpha);
          return;
        }
      }
    }
  }

  /** boxed writes a number in the middle of a bar that is as wide as it needs. */
  boxed(text: string, x: number, y: number, paint: string, alpha: number, bar: number): void {
    const { c } = this;
    c.save();
    c.font = c.font.replace(/^\d+px/, "bold 10px");
    const width = Math.max(bar, c.measureText(text).width + 8);
    c.globalAlpha = alpha;
    c.fillStyle = paint;
    c.beginPath();
    c.roundRect(x - width / 2, y - 7, width, 14, 3);
    c.fill();
    c.fillStyle = "#ffffff";
    c.textAlign = "center";
    c.fillText(text, x, y + 0.5);
    c.restore();
    this.avoid(x - width / 2, y - 7, width, 14);
  }

  /** along writes over an arrow, in its direction, and returns the line on which the text stands. */
  along(text: string, s: Segment, number: number, paint: string, alpha: number): Segment | undefined {
    const length = Math.hypot(s.x2 - s.x1, s.y2 - s.y1);
    const shown = this.#shorten(text, length - 22);
    if (!shown || length < 40) return undefined;
    const width = this.c.measureText(shown).width;
    const forward = s.x2 >= s.x1;
    const [ax, ay, bx, by] = forward ? [s.x1, s.y1, s.x2, s.y2] : [s.x2, s.y2, s.x1, s.y1];
    const cos = (bx - ax) / length;
    const sin = (by - ay) / length;
    for (const strict of [true, false]) {
      for (const share of [0.5, 0.35, 0.65, 0.2, 0.8]) {
        const start = share * length - width / 2;
        if (start < 9 || start + width > length - 9) continue;
        for (const off of [-8, 9]) {
          const x = ax + cos * start - sin * off;
          const y = ay + sin * start + cos * off;
          if (!this.#freeAlong(x, y, cos, sin, width, strict ? number : undefined)) continue;
          this.#takeAlong(x, y, cos, sin, width);
          this.c.save();
          this.c.translate(x, y);
          this.c.rotate(Math.atan2(sin, cos));
          this.#write(shown, 0, 0, paint, alpha);
          this.c.restore();
          return { x1: x, y1: y, x2: x + cos * width, y2: y + sin * width };
        }
      }
    }
    return undefined;
  }

  #write(text: string, x: number, y: number, paint: string, alpha: number): void {
    const { c } = this;
    c.textAlign = "left";
    c.globalAlpha = 1;
    c.strokeStyle = this.paper;
    c.lineWidth = 3;
    c.lineJoin = "round";
    c.strokeText(text, x, y);
    c.globalAlpha = alpha;
    c.fillStyle = paint;
    c.fillText(text, x, y);
    c.globalAlpha = 1;
  }

  /** The text, or its beginning, or only its name: what fits the room. */
  #shorten(text: string, room: number): string {
    if (this.c.measureText(text).width <= room) return text;
    const name = text.split(" ", 1)[0] ?? "";
    let cut = text;
    while (cut.length > name.length + 2 && this.c.measureText(cut + "…").width > room) cut = cut.slice(0, -1);
    if (cut.length > name.length + 2) return cut.trimEnd() + "…";
    return this.c.measureText(name).width <= room ? name : "";
  }

  #freeAlong(x: number, y: number, cos: number, sin: number, width: number, line: number | undefined): boolean {
    for (let at = 0; at <= width; at += cell) {
      if (!this.#free(x + cos * at - 3, y + sin * at - 5, 6, 10, line)) return false;
    }
    return true;
  }

  #takeAlong(x: number, y: number, cos: number, sin: number, width: number): void {
    for (let at = 0; at <= width; at += cell) this.avoid(x + cos * at - 3, y + sin * at - 5, 6, 10);
  }

  /** With a line given, no other line may run through the cells. */
  #free(x: number, y: number, width: number, height: number, line: number | undefined): boolean {
    return this.#cells(x, y, width, height, (at) => {
      const through = this.#lines[at] ?? 0;
      return this.#taken[at] === 0 && (line === undefined || through === 0 || through === line);
    });
  }

  #cells(x: number, y: number, width: number, height: number, visit: (at: number) => boolean): boolean {
    const left = Math.max(0, Math.floor(x / cell));
    const right = Math.min(this.#columns - 1, Math.floor((x + width) / cell));
    const top = Math.max(0, Math.floor(y / cell));
    const bottom = Math.min(this.#rows - 1, Math.floor((y + height) / cell));
    for (let row = top; row <= bottom; row++) {
      for (let column = left; column <= right; column++) {
        if (!visit(row * this.#columns + column)) return false;
      }
    }
    return true;
  }
}
