import "virtual:tokens.css";
import "./base.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { applyTheme, readSettings } from "./settings.svelte";

applyTheme(readSettings().theme);
mount(App, { target: document.getElementById("app") as HTMLElement });
