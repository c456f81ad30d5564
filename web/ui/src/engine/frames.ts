import type { Frame } from "./protocol";

/**
 * FrameReader cuts a stream of bytes into frames: two lengths, uint32 little-endian,
 * then the header as JSON, then the body.
 */
export class FrameReader {
  #rest = new Uint8Array(0);

  /** push returns the frames that are complete with these bytes. */
  push(bytes: Uint8Array): Frame[] {
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    const frames: Frame[] = [];
    let at = 0;
    while (all.length - at >= 8) {
      const view = new DataView(all.buffer, at);
      const head = view.getUint32(0, true);
      const body = view.getUint32(4, true);
      if (all.length - at - 8 < head + body) break;
      const start = at + 8;
      const header = JSON.parse(new TextDecoder().decode(all.subarray(start, start + head))) as Frame["header"];
      // A copy, so that the columns in it are aligned.
      frames.push({ header, body: body ? all.slice(start + head, start + head + body).buffer : null });
      at = start + head + body;
    }
    this.#rest = all.slice(at);
    return frames;
  }

  /** rest is how many bytes of an incomplete frame there are. */
  get rest(): number {
    return this.#rest.length;
  }
}
