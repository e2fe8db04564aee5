// What a pointer shows: the value of the chart's nearest point, across all of its width.
"use strict";
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
let near = null;

function leave() {
  tip.hidden = true;
  if (near) near.classList.remove("near");
  near = null;
}

function nearest(points, x, y, inRows) {
  let found = null;
  let least = Infinity;
  for (const point of points) {
    const box = point.getBoundingClientRect();
    // Along x first: a reader moves along the curve, not onto it. Among rows, the row first.
    const across = Math.abs(box.x + box.width / 2 - x);
    const down = Math.abs(box.y + box.height / 2 - y);
    const distance = inRows ? across + down * 8 : across * 4 + down;
    if (distance < least) [found, least] = [point, distance];
  }
  return found;
}

function show(point) {
  leave();
  near = point;
  point.classList.add("near");
  tip.textContent = point.dataset.tip;
  tip.hidden = false;
  const at = point.getBoundingClientRect();
  const left = Math.min(Math.max(at.x + at.width / 2 - tip.offsetWidth / 2, 6), innerWidth - tip.offsetWidth - 6);
  const above = at.y - tip.offsetHeight - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : at.y + at.height + 8}px`;
}

for (const drawing of document.querySelectorAll(".chart svg")) {
  const points = [...drawing.querySelectorAll("[data-tip]")];
  const inRows = drawing.classList.contains("rows");
  const move = (event) => show(nearest(points, event.clientX, event.clientY, inRows));
  drawing.addEventListener("pointermove", move);
  drawing.addEventListener("pointerdown", move);
  drawing.addEventListener("pointerleave", leave);
}
addEventListener("scroll", leave, { passive: true });
