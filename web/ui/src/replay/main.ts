import "virtual:tokens.css";
import "../app/base.css";
import { mount } from "svelte";
import { applyTheme, readSettings } from "../app/settings.svelte";
import { lab as strings } from "../strings/lab";
import Replay from "./Replay.svelte";
import { unpacked } from "./recording";

applyTheme(readSettings().theme);
const target = document.getElementById("app") as HTMLElement;
unpacked(document.getElementById("run")?.textContent ?? "").then(
  (recording) => void mount(Replay, { target, props: { recording } }),
  (error: unknown) => {
    target.textContent = strings.failed(error instanceof Error ? error.message : String(error));
  },
);
