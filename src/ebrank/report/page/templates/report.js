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

  if (innerWidth < 1152) document.querySelector("nav details").open = false;
})();
