import { lab as strings } from "../strings/lab";

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** embedCode is the HTML that shows a run in a frame of another page. The address is that of the run. */
export function embedCode(url: string, name: string): string {
  const [page = "", fragment = ""] = url.split("#");
  const address = `${page}#${fragment}${fragment.includes("?") ? "&" : "?"}embed=1`;
  return `<iframe src="${escaped(address)}" title="${escaped(strings.embed.title(name))}" width="600" height="400"></iframe>`;
}
