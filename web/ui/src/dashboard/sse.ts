/** One server-sent event. */
export interface SentEvent {
  kind: string;
  data: string;
}

/**
 * SentEvents reads a stream of server-sent events that comes in pieces cut
 * anywhere. EventSource would do it too, but it sends no headers and hides why a
 * connection failed.
 */
export class SentEvents {
  #rest = "";
  #kind = "";
  #data: string[] = [];

  /** push takes the next piece and returns the events that are complete now. */
  push(piece: string): SentEvent[] {
    const events: SentEvent[] = [];
    // A line feed may follow in the next piece, so a carriage return at the end waits.
    const text = this.#rest + piece;
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + text.slice(end);
    for (const line of lines) {
      if (line !== "") {
        this.#field(line);
      } else if (this.#data.length > 0) {
        events.push({ kind: this.#kind || "message", data: this.#data.join("\n") });
        this.#kind = "";
        this.#data = [];
      } else {
        this.#kind = "";
      }
    }
    return events;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#kind = value;
    if (name === "data") this.#data.push(value);
  }
}
