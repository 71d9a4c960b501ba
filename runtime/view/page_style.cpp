//===- page_style.cpp - The look of a page --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A role has one colour in every picture. Neighbours differ also for people who do not tell red
// from green, on both backgrounds. Text never has the colour of a series.
//
//===----------------------------------------------------------------------===//
#include "runtime/view/page_style.h"

namespace boa {

const char *StyleSheet() {
  return R"(
:root { color-scheme: light dark; --page: #f9f9f7; --card: #fcfcfb; --ink: #0b0b0b; --soft: #52514e;
  --faint: #898781; --grid: #e1e0d9; --rule: #c3c2b7; --limit: #d03b3b; --lane: #f0efec; --bar: #2a78d6;
  --c0: #2a78d6; --c1: #1baf7a; --c2: #eb6834; --c3: #eda100; --c4: #e87ba4; --c5: #4a3aa7;
  --c6: #c3c2b7; --c7: #a3a29a; --c8: #5f5e59; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d0d0d; --card: #1a1a19; --ink: #ffffff; --soft: #c3c2b7; --faint: #898781;
    --grid: #2c2c2a; --rule: #52514e; --limit: #e66767; --lane: #242423; --bar: #3987e5;
    --c0: #3987e5; --c1: #199e70; --c2: #d95926; --c3: #c98500; --c4: #d55181; --c5: #9085e9;
    --c6: #52514e; --c7: #75746e; --c8: #b5b4aa; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 4px; }
h3 { font-size: 15px; margin: 18px 0 0; }
p { margin: 4px 0 10px; color: var(--soft); max-width: 75ch; }
section { background: var(--card); border: 1px solid var(--grid); border-radius: 8px;
  padding: 18px 20px; margin-top: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px;
  margin: 18px 0 0; padding: 0; }
.tiles div { background: var(--card); border: 1px solid var(--grid); border-radius: 8px;
  padding: 12px 16px; }
.tiles dt { color: var(--soft); font-size: 13px; }
.tiles dd { margin: 0; font-size: 24px; font-weight: 600; line-height: 1.3; }
.tiles dd.note { font-size: 13px; font-weight: 400; color: var(--soft); overflow-wrap: anywhere; }
pre { background: var(--lane); border-radius: 6px; padding: 12px 14px; overflow-x: auto;
  font: 13px/1.5 ui-monospace, monospace; margin: 8px 0 12px; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg text.axis { fill: var(--faint); font-size: 11px; }
svg text.strong { font-weight: 600; fill: var(--ink); }
.grid { stroke: var(--grid); stroke-width: 1; }
.rule { stroke: var(--ink); stroke-width: 1.5; }
.limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 5 3; }
.lane { fill: var(--lane); }
.bar { fill: var(--bar); } .bar.soft { opacity: 0.45; }
.p0 { fill: var(--c0); } .p1 { fill: var(--c1); } .p2 { fill: var(--c2); } .p3 { fill: var(--c3); }
.p4 { fill: var(--c4); } .p5 { fill: var(--c5); } .p6 { fill: var(--c6); } .p7 { fill: var(--c7); }
.p8 { fill: var(--c8); }
.line { fill: none; stroke-width: 2; } .roof { fill: none; stroke-width: 1.5; stroke-dasharray: 5 4; }
.line.s0, .roof.s0 { stroke: var(--c0); } .line.s1, .roof.s1 { stroke: var(--c2); }
.roof.ink { stroke: var(--faint); }
.dot { stroke: var(--card); stroke-width: 1.5; } .dot.s0 { fill: var(--c0); } .dot.s1 { fill: var(--c2); }
.legend { font-size: 13px; margin: 6px 0 4px; max-width: none; }
.legend span { white-space: nowrap; margin-right: 14px; }
.legend svg { display: inline-block; width: 10px; height: 10px; margin-right: 5px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; margin: 6px 0; }
th, td { text-align: right; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--grid);
  vertical-align: top; }
th:first-child, td.text { text-align: left; } thead th { color: var(--soft); font-weight: 500; }
tbody th { font-weight: 500; } .words th, .words td { text-align: left; }
details { margin-top: 6px; font-size: 14px; } summary { cursor: pointer; color: var(--soft); }
.warning { color: var(--limit); font-weight: 600; }
footer { color: var(--faint); font-size: 13px; margin-top: 18px; }
@media print { section { break-inside: avoid; } body { background: none; } }
)";
}

} // namespace boa
