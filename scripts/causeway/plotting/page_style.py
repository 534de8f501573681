"""The overview's style sheet. It stands in the page itself, which needs no network."""

from causeway.plotting import theme

STYLE = f"""
:root {{
  --ink: {theme.INK}; --muted: {theme.MUTED}; --line: {theme.GRID}; --soft: #f6f8fa; --link: #0550ae; --accent: {theme.SEQUENTIAL[5]};
  --ok: {theme.STATUS["ok"]}; --caution: {theme.STATUS["caution"]}; --blocked: {theme.STATUS["blocked"]};
}}
* {{ box-sizing: border-box; }}
html {{ scroll-padding-top: 12px; }}
body {{ margin: 0; color: var(--ink); background: #fff; font: 14px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, {theme.FONT}; }}
.page {{ max-width: 1240px; margin: 0 auto; padding: 0 24px 48px; }}
header.top {{ border-bottom: 3px solid var(--accent); padding: 26px 0 14px; margin-bottom: 18px; }}
h1 {{ font-size: 26px; line-height: 1.2; margin: 0; letter-spacing: -.01em; }}
h2 {{ font-size: 21px; line-height: 1.25; margin: 34px 0 10px; padding-top: 10px; border-top: 1px solid var(--line); }}
h2.dataset {{ font-size: 24px; border-top: 3px solid var(--accent); }}
header.top + section h2.dataset {{ border-top: none; margin-top: 0; padding-top: 0; }}
h3 {{ font-size: 16.5px; margin: 26px 0 6px; }}
h4 {{ font-size: 14px; margin: 18px 0 4px; }}
p {{ margin: 4px 0 10px; max-width: 110ch; }}
a {{ color: var(--link); text-decoration: none; }}
a:hover {{ text-decoration: underline; }}
code {{ font: 12.5px/1.4 ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; overflow-wrap: anywhere; }}
.muted, .note {{ color: var(--muted); }}
.note {{ font-size: 13px; margin: 2px 0 8px; }}
nav.toc.parts {{ border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); padding: 6px 0; margin: 14px 0; }}
nav.toc {{ display: flex; flex-wrap: wrap; gap: 4px 18px; margin-top: 10px; }}

.facts {{ display: flex; flex-wrap: wrap; gap: 10px 22px; margin: 10px 0 14px; }}
.facts div {{ border-left: 3px solid var(--line); padding-left: 10px; overflow-wrap: anywhere; }}
.facts div > span {{ display: block; color: var(--muted); font-size: 12.5px; }}
.facts b {{ font-weight: 600; font-size: 15px; font-variant-numeric: tabular-nums; }}

.strip {{ display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 6px 0; }}
.chip {{ display: inline-flex; gap: 6px; align-items: baseline; border: 1px solid var(--line); border-radius: 12px; padding: 1px 10px; }}
.chip::before {{ content: '●'; font-size: 10px; }}
.chip.ok::before {{ color: var(--ok); }}
.chip.caution::before {{ content: '▲'; color: var(--caution); }}
.chip.blocked {{ background: #fdf1ef; }}
.chip.blocked::before {{ content: '■'; color: var(--blocked); }}
.chip.absent {{ color: var(--muted); }}
.chip.absent::before {{ content: '○'; }}

.verdict {{ font-size: 12px; font-weight: 600; border-radius: 3px; padding: 1px 6px; border: 1px solid currentColor; white-space: nowrap; }}
.verdict.supported {{ color: {theme.VERDICTS["supported"]}; }}
.verdict.inconclusive {{ color: {theme.VERDICTS["inconclusive"]}; border-style: dashed; }}
.verdict.refuted {{ color: {theme.VERDICTS["refuted"]}; border-style: dotted; }}

ol.findings {{ list-style: none; margin: 8px 0 4px; padding: 0; display: grid; gap: 8px; counter-reset: f; }}
ol.findings li {{
  display: grid; grid-template-columns: 30px minmax(0, 1fr) auto; gap: 4px 12px; align-items: start;
  background: var(--soft); border-radius: 6px; padding: 10px 14px; counter-increment: f;
}}
ol.findings li::before {{ content: counter(f); font-size: 20px; line-height: 1.2; font-weight: 700; color: var(--accent); }}
ol.findings .said {{ overflow-wrap: anywhere; font-size: 15px; }}
ol.findings .saves {{ text-align: right; white-space: nowrap; }}
ol.findings .saves b {{ font-size: 16px; display: block; }}
ol.findings .under {{ font-size: 13px; color: var(--muted); display: flex; gap: 14px; flex-wrap: wrap; margin-top: 3px; }}
ul.pairs {{ list-style: none; margin: 8px 0 4px; padding: 0; display: grid; gap: 8px; }}
ul.pairs li {{ background: var(--soft); border-radius: 6px; padding: 10px 14px; }}
ul.pairs .said {{ overflow-wrap: anywhere; font-size: 15px; }}
ul.pairs .under {{ font-size: 13px; color: var(--muted); display: flex; gap: 14px; flex-wrap: wrap; margin-top: 3px; }}

ol.findings .try {{ font-size: 13.5px; margin-top: 2px; overflow-wrap: anywhere; }}
ol.findings + details, details > ol.findings {{ margin-top: 8px; }}

data[data-query] {{ cursor: help; }}
data[data-query]:hover {{ text-decoration: underline dotted; text-underline-offset: 3px; }}
#query {{ position: fixed; left: 0; right: 0; bottom: 0; z-index: 9; }}
#query {{ background: #fff; border-top: 2px solid var(--accent); padding: 8px 24px; }}
#query:not([hidden]) {{ display: flex; gap: 16px; align-items: start; justify-content: space-between; }}
#query output {{ font: 12.5px/1.45 ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; max-height: 30vh; }}
#query output {{ overflow-y: auto; overflow-wrap: anywhere; white-space: pre-wrap; }}

.beside.trees {{ grid-template-columns: minmax(0, 17fr) minmax(0, 11fr); gap: 28px; }}
table.trees {{ font-size: 12.5px; }}
table.trees th.flavour {{ text-align: center; border-bottom: none; color: var(--ink); }}
table.trees th.n {{ font-size: 12px; padding: 2px 3px; }}
table.trees td {{ padding: 2px 4px; border: 1px solid #fff; }}
table.trees td.ratio {{ width: 37px; }}
table.trees td.main {{ font-weight: 700; }}
table.trees tr.first td {{ border-top: 6px solid #fff; }}
table.trees td.part {{ overflow-wrap: anywhere; min-width: 90px; }}
.tight p {{ margin: 2px 0; }}
.tight p::first-letter {{ text-transform: uppercase; }}
details.folded {{ border: 1px solid var(--line); border-radius: 6px; padding: 4px 14px; margin: 14px 0; }}
.nowrap {{ white-space: nowrap; }}
table.datasets td {{ padding: 5px 6px; }}
table.waterfall td {{ font-size: 13px; }}
table.components {{ width: auto; }}
table.components td, table.components th {{ padding-right: 24px; }}

table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-size: 12.5px; font-weight: 600; color: var(--muted); white-space: nowrap; vertical-align: bottom; }}
th {{ border-bottom: 1px solid {theme.FAINT}; padding: 4px 6px; }}
td {{ padding: 3px 6px; border-bottom: 1px solid #eaeef2; vertical-align: middle; }}
th.n, td.n {{ text-align: right; white-space: nowrap; }}
td svg {{ vertical-align: middle; }}
td.name {{ overflow-wrap: anywhere; min-width: 130px; }}
td.share, td.hash {{ white-space: nowrap; }}
table.kernels th {{ white-space: normal; overflow-wrap: anywhere; min-width: 74px; }}
table.kernels th:nth-child(2) {{ min-width: 172px; }}
table.kernels td.name {{ white-space: nowrap; max-width: 370px; overflow: hidden; text-overflow: ellipsis; }}
th button {{ all: unset; cursor: pointer; }}
th button:focus-visible, button:focus-visible, summary:focus-visible {{ outline: 2px solid var(--link); outline-offset: 2px; }}
th button::after {{ content: ' ▼'; font-size: 9px; visibility: hidden; }}
th[aria-sort] button::after {{ visibility: visible; }}
th[aria-sort=ascending] button::after {{ content: ' ▲'; }}
tbody tr:hover {{ background: var(--soft); }}
.dot {{ display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px; }}
.raises, .lowers, .undecided {{ white-space: nowrap; font-weight: 600; }}
.raises {{ color: {theme.RAISES}; }}
.lowers {{ color: {theme.LOWERS}; }}
.undecided {{ color: var(--muted); }}
.fragile {{ border-bottom: 1.5px dashed currentColor; }}
.wide {{ overflow-x: auto; }}

details > summary {{ cursor: pointer; color: var(--link); padding: 3px 0; }}
details.scope {{ border: 1px solid var(--line); border-radius: 6px; margin: 8px 0; padding: 0 14px; }}
details.scope > summary {{ color: var(--ink); padding: 8px 0; display: flex; gap: 12px; align-items: baseline; flex-wrap: wrap; }}
details.scope > summary::before {{ content: '▸'; color: var(--muted); }}
details.scope[open] > summary::before {{ content: '▾'; }}
details.scope > summary b {{ font-size: 15px; overflow-wrap: anywhere; }}
details.scope > summary .lead {{ margin-left: auto; color: var(--muted); font-size: 13px; }}
details.scope[open] > summary .lead {{ display: none; }}
.beside {{ display: grid; grid-template-columns: minmax(0, 13fr) minmax(0, 11fr); gap: 16px; align-items: start; padding-bottom: 10px; }}
.beside p code {{ display: block; max-height: 4.3em; overflow: auto; }}
.beside table {{ font-size: 13px; }}
.beside th, .beside td {{ padding: 3px 5px; }}
.beside .verdict {{ padding: 0 4px; font-size: 11.5px; }}
.beside > figure svg {{ display: block; max-width: 100%; height: auto; }}
button[data-toggle] {{ font: inherit; font-size: 13px; padding: 2px 10px; background: var(--soft); }}
button[data-toggle] {{ border: 1px solid var(--line); border-radius: 4px; }}
figure {{ margin: 0; }}
figure.drawing {{ margin: 10px 0; }}
.drawing svg {{ display: block; width: 100%; height: auto; }}
.map svg {{ display: block; width: 100%; height: auto; }}
.map svg[data-explorer] {{ cursor: zoom-in; }}
.map output {{ display: block; min-height: 20px; font-size: 13px; }}
.limits li {{ margin: 3px 0; max-width: 110ch; }}
dl.glossary {{ display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2px 16px; }}
dl.glossary dt {{ font-weight: 600; }}
dl.glossary dd {{ margin: 0; max-width: 100ch; }}
footer {{ margin-top: 30px; border-top: 1px solid var(--line); padding-top: 8px; color: var(--muted); font-size: 13px; }}

@media (max-width: 900px) {{
  .beside, .beside.trees {{ grid-template-columns: minmax(0, 1fr); }}
  ol.findings li {{ grid-template-columns: 30px minmax(0, 1fr); }}
  ol.findings .saves {{ grid-column: 2; text-align: left; }}
}}
@page {{ size: A4 landscape; margin: 10mm; }}
@media print {{
  body {{ font-size: 11.5px; }}
  .page {{ max-width: none; padding: 0; }}
  a {{ color: inherit; }}
  h2, h3, h4 {{ break-after: avoid; }}
  details.scope, tr, li, figure {{ break-inside: avoid; }}
  .map output, nav.toc, button[data-toggle], #query:not([hidden]), .hint {{ display: none; }}
  .wide {{ overflow: visible; }}
  section.dataset + section.dataset {{ break-before: page; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
}}
"""
