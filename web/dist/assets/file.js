import{r as e}from"./Lab.js";import{packed as t}from"./recording.js";var n=`default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;async function r(r,i){let a=async t=>{let n=await fetch(new URL(`assets/${t}`,e()));if(!n.ok)throw Error(`assets/${t}: ${n.status}`);return n.text()},[o,s,c]=await Promise.all([a(`replay.js`),a(`replay.css`),t(r)]);return`<!doctype html>
<html lang="en" data-face="replay">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${n}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${i.replace(/[<>&"]/g,e=>`&#${e.charCodeAt(0)};`)}</title>
<style>${s.replaceAll(`</`,`<\\/`)}</style>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript.</noscript>
<script type="text/plain" id="run">${c}<\/script>
<script>${o.replace(/<(?=\/script|!--)/gi,`\\x3c`)}<\/script>
</body>
</html>
`}export{r as replayFile};