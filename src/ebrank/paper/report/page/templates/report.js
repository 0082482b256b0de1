"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const deviations = document.getElementById("deviations");
  const system = matchMedia("(prefers-color-scheme: dark)");

  // Pages opened from a disk may have no storage.
  const remembered = () => { try { return localStorage.getItem("ebrank-theme"); } catch { return null; } };
  const remember = (value) => { try { localStorage.setItem("ebrank-theme", value); } catch { /* then not */ } };

  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = isDark() ? "Light" : "Dark"; };

  if (remembered()) root.dataset.theme = remembered();
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  label();

  deviations.addEventListener("click", () => {
    const hidden = root.classList.toggle("without-deviations");
    deviations.setAttribute("aria-pressed", String(!hidden));
  });
  document.querySelector(".controls").hidden = false;

  // A table wider than its place says so, until the reader has seen its end.
  const hints = new Map();
  const hint = (region) => {
    const hidden = region.scrollWidth - region.clientWidth - region.scrollLeft > 4;
    if (hidden && !hints.has(region)) {
      const words = document.createElement("p");
      words.className = "more";
      words.setAttribute("aria-hidden", "true");
      words.textContent = "More columns: swipe or scroll sideways →";
      region.before(words);
      hints.set(region, words);
    }
    if (hints.has(region)) hints.get(region).style.visibility = hidden ? "visible" : "hidden";
  };
  const regions = [...document.querySelectorAll(".scroll")];
  for (const region of regions) region.addEventListener("scroll", () => hint(region), { passive: true });
  const hintAll = () => regions.forEach(hint);
  addEventListener("resize", hintAll);
  hintAll();

  // Figures: the value under the pointer, and one line alone.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  const NEAR = 30;

  const nearest = (svg, series, event, chosen) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = null;
    for (const one of series) {
      if (chosen && one.label !== chosen) continue;
      for (const [x, y, text] of one.points) {
        const distance = Math.hypot(x - place.x, y - place.y);
        if (distance < (best?.distance ?? NEAR)) best = { distance, x, y, text, label: one.label };
      }
    }
    return best;
  };

  const show = (svg, point, event) => {
    let ring = svg.querySelector(".at");
    if (!ring) {
      ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      ring.setAttribute("class", "at");
      ring.setAttribute("r", "5");
      svg.append(ring);
    }
    ring.style.display = point ? "" : "none";
    tip.hidden = !point;
    if (!point) return;
    ring.setAttribute("cx", point.x);
    ring.setAttribute("cy", point.y);
    const name = document.createElement("b");
    name.textContent = point.label;
    tip.replaceChildren(name, point.text);
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${Math.max(4, event.clientY - box.height - 12)}px`;
  };

  for (const group of document.querySelectorAll(".panels")) {
    const pictures = [...group.querySelectorAll("svg[data-series]")]
      .map((svg) => ({ svg, series: JSON.parse(svg.dataset.series) }));
    const colors = new Map(pictures.flatMap(({ series }) => series.map((one) => [one.label, one.color])));
    const buttons = new Map();
    let chosen = null;
    const isolate = (label) => {
      chosen = label === chosen ? null : label;
      for (const { svg, series } of pictures) {
        const there = !chosen || series.some((one) => one.label === chosen);
        series.forEach((one, number) => {
          for (const part of svg.querySelectorAll(`[id*="-series-${number}-"]`)) {
            part.classList.toggle("dim", there && chosen !== null && one.label !== chosen);
          }
        });
      }
      for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(name === chosen));
    };
    for (const { svg, series } of pictures) {
      svg.addEventListener("pointermove", (event) => show(svg, nearest(svg, series, event, chosen), event));
      svg.addEventListener("pointerleave", () => show(svg, null));
      svg.addEventListener("click", (event) => {
        const part = event.target.closest('[id*="-series-"]');
        const number = part?.id.match(/-series-(\d+)-/)?.[1];
        if (number) isolate(series[number].label);
      });
    }
    if (colors.size < 2) continue;
    const bar = document.createElement("p");
    bar.className = "only";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Show one alone");
    bar.append("Show alone:");
    for (const [label, color] of colors) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.style.borderLeftColor = color;
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => isolate(label));
      buttons.set(label, button);
      bar.append(button);
    }
    group.append(bar);
  }

  // PNG of a figure, drawn from the SVG that the page holds.
  for (const link of document.querySelectorAll('a[download$=".svg"]')) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = link.download.replace(/svg$/, "png");
    button.addEventListener("click", () => {
      const picture = new Image();
      picture.onload = () => {
        const canvas = document.createElement("canvas");
        canvas.width = 3 * picture.naturalWidth;
        canvas.height = 3 * picture.naturalHeight;
        canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
        const save = document.createElement("a");
        save.download = button.textContent;
        save.href = canvas.toDataURL("image/png");
        save.click();
      };
      picture.src = link.href;
    });
    link.after(" · ", button);
  }

  if (innerWidth < 1152) document.querySelector("nav details").open = false;
})();
