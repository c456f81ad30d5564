import { root } from "../engine/hosts";
import { packed, type Recording } from "./recording";

/** The policy of the file: nothing is loaded from anywhere. */
const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'";

/** replayFile makes one file that shows a recorded run in any browser, from the disk, without an engine. */
export async function replayFile(recording: Recording, title: string): Promise<string> {
  const asset = async (name: string): Promise<string> => {
    const response = await fetch(new URL(`assets/${name}`, root()));
    if (!response.ok) throw new Error(`assets/${name}: ${response.status}`);
    return response.text();
  };
  const [script, style, data] = await Promise.all([asset("replay.js"), asset("replay.css"), packed(recording)]);
  const text = title.replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
  return `<!doctype html>
<html lang="en" data-face="replay">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${text}</title>
<style>${style.replaceAll("</", "<\\/")}</style>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript.</noscript>
<script type="text/plain" id="run">${data}</script>
<script>${script.replace(/<(?=\/script|!--)/gi, "\\x3c")}</script>
</body>
</html>
`;
}
