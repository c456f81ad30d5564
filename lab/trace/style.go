package trace

import (
	"fmt"
	"strings"
)

// colour is a colour of the picture, on a light and on a dark background.
type colour struct{ name, light, dark string }

var palette = []colour{
	{"ink", "#1f2328", "#e6edf3"},
	{"paper", "#ffffff", "#0d1117"},
	{"muted", "#656d76", "#9198a1"},
	{"faint", "#d8dee4", "#2d333b"},
	{"inside", "#1a7f37", "#2ea043"},
	{"alarm", "#cf222e", "#f85149"},
	{"m1", "#0969da", "#58a6ff"},
	{"m2", "#9a6700", "#d29922"},
	{"m3", "#8250df", "#bc8cff"},
	{"m4", "#bc4c00", "#f0883e"},
	{"m5", "#0a7c86", "#39c5cf"},
	{"m6", "#bf3989", "#f778ba"},
}

// rules is the stylesheet of the picture. Every "property: @name" is a colour. Each rule gets a
// class, so that it does not affect a page that contains the picture.
var rules = []string{
	`text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 11px; fill: currentColor }`,
	`{ color: @ink }`,
	`.paper { fill: @paper }`,
	`.head { font-size: 16px; font-weight: 600 }`,
	`.sub, .time, .key { fill: @muted }`,
	`.time { text-anchor: end; font-size: 10px }`,
	`.guide { stroke: @faint; stroke-width: 1; stroke-dasharray: 1 4 }`,
	`.tick { stroke: @muted; fill: none }`,
	`.line { stroke: currentColor; stroke-width: 1.2 }`,
	`.down { stroke: @alarm; stroke-width: 1.2; stroke-dasharray: 2 4; fill: none }`,
	`.paused { stroke: @muted; stroke-width: 3; stroke-dasharray: 6 4; fill: none }`,
	`.box { stroke: currentColor; stroke-width: 1.2; fill: @paper }`,
	`.name { text-anchor: middle; font-size: 13px; font-weight: 600 }`,
	`.waiting { fill: @inside; fill-opacity: 0.35 }`,
	`.inside { fill: @inside }`,
	`.fence { text-anchor: middle; font-size: 10px; font-weight: 700; fill: #ffffff; paint-order: stroke; stroke: @inside; stroke-width: 3px }`,
	`.m path { stroke-width: 1.3; fill: none }`,
	`.m { stroke: currentColor }`,
	`.m1 { color: @m1 }`, `.m2 { color: @m2 }`, `.m3 { color: @m3 }`,
	`.m4 { color: @m4 }`, `.m5 { color: @m5 }`, `.m6 { color: @m6 }`,
	`.m path.tip { fill: currentColor; stroke: none }`,
	`.side path { stroke-width: 1; stroke-dasharray: 4 2 }`,
	`.open path { stroke-dasharray: 2 3 }`,
	`path.alarm { stroke: @alarm; stroke-width: 2; stroke-dasharray: none; fill: none }`,
	`.cut { stroke: @alarm; stroke-dasharray: 8 4 }`,
	`.again { fill: @inside }`,
	`.dot { fill: currentColor; stroke: @paper; stroke-width: 1 }`,
	`.timer { fill: @paper; stroke: @muted }`,
	`.t { paint-order: stroke; stroke: @paper; stroke-width: 3px; stroke-linejoin: round }`,
	`.t1 { fill: @m1 }`, `.t2 { fill: @m2 }`, `.t3 { fill: @m3 }`,
	`.t4 { fill: @m4 }`, `.t5 { fill: @m5 }`, `.t6 { fill: @m6 }`,
	`.small { font-size: 9px; fill: @muted }`,
	`.bad { fill: @alarm; font-weight: 600 }`,
}

var style = stylesheet()

func stylesheet() string {
	var light, dark strings.Builder
	for _, rule := range rules {
		selectors, body, _ := strings.Cut(rule, "{")
		body = strings.TrimSuffix(strings.TrimSpace(body), " }")
		var declarations, darker []string
		for _, declaration := range strings.Split(body, "; ") {
			property, value, _ := strings.Cut(declaration, ": ")
			c, isColour := colourNamed(value)
			if !isColour {
				declarations = append(declarations, declaration)
				continue
			}
			// Some programs do not support variables. They use the first declaration.
			declarations = append(declarations, property+": "+c.light,
				fmt.Sprintf("%s: var(--trace-%s, %s)", property, c.name, c.light))
			darker = append(darker, property+": "+c.dark, fmt.Sprintf("%s: var(--trace-%s, %s)", property, c.name, c.dark))
		}
		scoped := scope(selectors)
		fmt.Fprintf(&light, "%s { %s }\n", scoped, strings.Join(declarations, "; "))
		if darker != nil {
			fmt.Fprintf(&dark, "%s { %s }\n", scoped, strings.Join(darker, "; "))
		}
	}
	return light.String() + "@media (prefers-color-scheme: dark) {\n" + dark.String() + "}\n"
}

func colourNamed(value string) (colour, bool) {
	for _, c := range palette {
		if value == "@"+c.name {
			return c, true
		}
	}
	return colour{}, false
}

func scope(selectors string) string {
	var scoped []string
	for _, selector := range strings.Split(selectors, ",") {
		scoped = append(scoped, strings.TrimSpace(".conclave-trace "+strings.TrimSpace(selector)))
	}
	return strings.Join(scoped, ", ")
}
