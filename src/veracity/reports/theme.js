"use strict";
// On every page: light or dark colours, and all that is folded open in print.
(() => {
  function theme() {
    const root = document.documentElement;
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    let chosen = null;
    try { chosen = localStorage.getItem("veracity-theme"); } catch { chosen = null; }
    if (chosen !== "dark" && chosen !== "light") chosen = null;
    const show = () => {
      if (chosen) root.dataset.theme = chosen;
      const dark = chosen ? chosen === "dark" : system.matches;
      button.textContent = dark ? "Light colours" : "Dark colours";
      button.dataset.next = dark ? "light" : "dark";
    };
    button.addEventListener("click", () => {
      chosen = button.dataset.next;
      try { localStorage.setItem("veracity-theme", chosen); } catch { /* a file may not remember */ }
      show();
    });
    system.addEventListener("change", show);
    button.hidden = false;
    show();
  }

  function openForPrint() {
    const opened = [];
    addEventListener("beforeprint", () => {
      document.querySelectorAll("details:not([open])").forEach((node) => { node.open = true; opened.push(node); });
    });
    addEventListener("afterprint", () => { opened.splice(0).forEach((node) => { node.open = false; }); });
  }

  theme();
  openForPrint();
})();
