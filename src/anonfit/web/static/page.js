// The page's own script: what forms and links cannot do. Everything works by keyboard without dragging, too.
"use strict";
(() => {
  const show = (form) => {
    const chosen = form.querySelector("input[name=builder]:checked, select[data-choose]");
    if (!chosen) return;
    for (const part of form.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(chosen.value);
  };
  const threshold = (box) => {
    const sizes = JSON.parse(box.dataset.sizes), steps = JSON.parse(box.dataset.steps), input = box.querySelector("input"), out = box.querySelector("output");
    const all = sizes.reduce((sum, bar) => sum + bar.persons, 0) || 1, least = steps[Number(input.value)];
    const below = sizes.reduce((sum, bar) => sum + (bar.low < least ? bar.persons : 0), 0);
    input.setAttribute("aria-valuetext", least);
    out.textContent = `${least}: ${(100 * below / all).toFixed(1)} % ${box.dataset.words}`;
    for (const bar of box.querySelectorAll("rect[data-low]")) bar.classList.toggle("below", Number(bar.dataset.low) < least);
  };
  const ready = () => {
    for (const form of document.querySelectorAll(".builder, .models")) show(form);
    for (const box of document.querySelectorAll(".threshold")) threshold(box);
    const rail = document.querySelector(".rail ol"), here = document.querySelector(".rail .here");
    if (rail && here) rail.scrollLeft = here.offsetLeft - rail.offsetLeft - 40;
    const point = document.querySelector(".wide-picture .mine, .wide-picture circle"), map = point?.closest(".wide-picture");
    if (map) map.scrollLeft += point.getBoundingClientRect().left - map.getBoundingClientRect().left - map.clientWidth / 2;
    const spec = document.querySelector("aside.spec details");
    if (spec && (matchMedia("(max-width: 76rem)").matches || localStorage.getItem("spec") === "closed")) spec.open = false;
  };
  // Who works by keyboard stays where they were when a part of the page is put in anew: at the same control, or at the
  // last one before it that is still there; at the beginning of the content where the step is another one.
  const controls = () => {
    const seen = new Map(), found = [];
    for (const each of document.querySelectorAll("#whole :is(a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0'])")) {
      const words = each.matches("a, button, summary") ? each.getAttribute("aria-label") ?? each.textContent.trim() : each.getAttribute("aria-label");
      const key = [each.tagName, each.id, each.name, each.matches("button, [type=checkbox], [type=radio]") && each.value, words, each.closest("form")?.getAttribute("action")].join("\n");
      seen.set(key, (seen.get(key) ?? 0) + 1);
      found.push([`${key}\n${seen.get(key)}`, each]);
    }
    return found;
  };
  const title = () => document.querySelector("h1")?.textContent;
  let left = null, pressed = false;
  for (const [name, now] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false], ["keydown", true], ["keyup", false]])
    document.addEventListener(name, () => { pressed = now; }, true);
  document.addEventListener("htmx:beforeSwap", (event) => {
    // A button that is pressed while runs are looked at again must not go before it is let go: the click would be lost.
    if (pressed && event.detail.requestConfig?.elt?.matches("[hx-trigger^=every]")) { event.detail.shouldSwap = false; return; }
    const at = controls(), place = at.findIndex(([, each]) => each === document.activeElement);
    left = place < 0 ? null : { title: title(), keys: at.slice(0, place + 1).reverse().map(([key]) => key) };
  });
  const stay = () => {
    if (!left || (document.activeElement && document.activeElement !== document.body)) return;
    const now = new Map(controls()), key = left.title === title() ? left.keys.find((each) => now.get(each)?.checkVisibility()) : null;
    (now.get(key) ?? document.getElementById("main"))?.focus({ preventScroll: true });
    left = null;
  };
  document.addEventListener("htmx:afterSettle", () => stay());
  document.addEventListener("DOMContentLoaded", ready);
  document.addEventListener("htmx:afterSettle", ready);
  document.addEventListener("toggle", (event) => {
    if (event.target.parentElement?.matches("aside.spec") && !matchMedia("(max-width: 76rem)").matches)
      localStorage.setItem("spec", event.target.open ? "open" : "closed");
  }, true);
  document.addEventListener("input", (event) => {
    const box = event.target.closest(".threshold");
    if (box) threshold(box);
    if (event.target.matches(".weights input[type=range]")) event.target.nextElementSibling.textContent = event.target.value;
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest(".builder, .models");
    if (form) show(form);
    if (event.target.matches("[data-column]")) {
      const list = [...document.querySelectorAll("datalist[data-values]")].find((each) => each.dataset.values === event.target.value);
      event.target.closest(".condition").querySelector("[name=value]").setAttribute("list", list?.id ?? "");
    }
    if (event.target.matches("[data-all]"))
      for (const box of document.querySelectorAll(`input[name=${event.target.dataset.all}]`)) box.checked = event.target.checked;
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent);
  });
  // Files that are dropped anywhere on the drop zone are taken at once.
  const zone = (event) => event.target.closest?.(".drop");
  document.addEventListener("dragover", (event) => { if (zone(event)) { event.preventDefault(); zone(event).classList.add("over"); } });
  document.addEventListener("dragleave", (event) => zone(event)?.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    const form = zone(event);
    if (!form || !event.dataTransfer.files.length) return;
    event.preventDefault();
    form.querySelector("input[type=file]").files = event.dataTransfer.files;
    form.requestSubmit();
  });
  // Parts of a tree are moved by dragging them onto a group.
  let dragged = null;
  document.addEventListener("dragstart", (event) => { dragged = event.target.closest?.(".tree li")?.dataset.path ?? null; });
  document.addEventListener("dragover", (event) => { if (dragged !== null && event.target.closest?.(".tree li.group")) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    const group = event.target.closest?.(".tree li.group");
    if (dragged === null || !group) return;
    event.preventDefault();
    const form = document.getElementById("tree");
    for (const box of form.querySelectorAll("input[name=node]")) box.checked = box.value === dragged;
    form.querySelector("[name=target]").value = group.dataset.path;
    form.querySelector("button[value=move]").click();  // htmx tells the button by its click
    dragged = null;
  });
})();
