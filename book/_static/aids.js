/* Words of the glossary show their meaning when they are pointed at or reached by keyboard; what is folded is printed;
   what goes on beyond the right edge fades there. */
(function () {
  "use strict";
  document.addEventListener("DOMContentLoaded", function () {
    var tip = document.createElement("div");
    tip.id = "nb-tip"; tip.className = "nb-tip"; tip.hidden = true; tip.setAttribute("role", "tooltip");
    document.body.appendChild(tip);
    function hide() { tip.hidden = true; }
    function show(link) {
      tip.textContent = link.dataset.meaning;
      tip.hidden = false;
      var at = link.getBoundingClientRect(), width = Math.min(340, window.innerWidth - 24);
      tip.style.width = width + "px";
      tip.style.left = Math.max(12, Math.min(at.left, window.innerWidth - width - 12)) + window.scrollX + "px";
      tip.style.top = at.bottom + 6 + window.scrollY + "px";
    }
    document.querySelectorAll("a.nb-term[title]").forEach(function (link) {
      link.dataset.meaning = link.title;
      link.removeAttribute("title");
      link.setAttribute("aria-describedby", "nb-tip");
      ["mouseenter", "focus"].forEach(function (name) { link.addEventListener(name, function () { show(link); }); });
      ["mouseleave", "blur"].forEach(function (name) { link.addEventListener(name, hide); });
    });
    document.addEventListener("keydown", function (event) { if (event.key === "Escape") hide(); });
    var wide = document.querySelectorAll("article .pst-scrollable-table-container, article [style*='overflow-x:auto']");
    function fade(part) {
      part.classList.toggle("nb-more", part.scrollLeft + part.clientWidth < part.scrollWidth - 2);
    }
    var watcher = new ResizeObserver(function (seen) { seen.forEach(function (one) { fade(one.target); }); });
    wide.forEach(function (part) {
      watcher.observe(part);
      part.addEventListener("scroll", function () { fade(part); }, { passive: true });
    });
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (part) { part.open = true; part.dataset.printed = ""; });
  });
  window.addEventListener("afterprint", function () {
    document.querySelectorAll("details[data-printed]").forEach(function (part) { part.open = false; delete part.dataset.printed; });
  });
})();
