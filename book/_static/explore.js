/* Plots whose points say what they are: by pointer, by touch, and by the arrow keys; several in one figure are chosen between. */
(function () {
  "use strict";
  function make(parent, tag, names, words) {
    var made = document.createElement(tag);
    Object.keys(names).forEach(function (key) { made.setAttribute(key, names[key]); });
    if (words) { made.textContent = words; }
    parent.appendChild(made);
    return made;
  }

  /* A list to choose from, with its label in front. */
  function chooser(parent, label, values, change) {
    var around = make(parent, "label", {}, label + " "), select = make(around, "select", {});
    values.forEach(function (value) { make(select, "option", { value: value }, value); });
    select.addEventListener("change", change);
    return select;
  }

  /* One plot: what it says stands above it, where no finger covers it. */
  function enliven(plot) {
    var points = JSON.parse(plot.querySelector("script").textContent);
    var area = plot.querySelector(".nb-area"), both = plot.dataset.nearest === "xy", alt = area.getAttribute("aria-label");
    var told = document.createElement("output"), mark = make(both ? area : plot, "i", { "class": both ? "nb-ring" : "nb-band", "aria-hidden": "true" });
    var now = -1;
    told.className = "nb-told";
    told.setAttribute("aria-live", "polite");
    plot.insertBefore(told, plot.querySelector(".nb-title"));
    area.tabIndex = 0;
    area.setAttribute("aria-label", alt + " Arrow keys go from point to point.");
    function show(n) {
      now = Math.max(0, Math.min(points.length - 1, n));
      var point = points[now];
      told.textContent = point[2];
      mark.style.setProperty("--x", point[0] / 1000);
      mark.style.setProperty("--y", point[1] / 1000);
      if (!both) { mark.style.top = area.offsetTop + "px"; }
      mark.classList.add("on");
      plot.querySelectorAll(".nb-choice").forEach(function (name) {
        name.classList.toggle("on", point[3].indexOf(Number(name.dataset.row)) >= 0);
      });
    }
    function nearest(event) {
      var box = area.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, best = -1, least = Infinity;
      if (x < -12 || x > box.width + 12 || both && (y < -12 || y > box.height + 12)) { return; }
      points.forEach(function (point, n) {
        var a = point[0] / 1000 * box.width - x, b = both ? point[1] / 1000 * box.height - y : 0;
        if (a * a + b * b < least) { least = a * a + b * b; best = n; }
      });
      if (best !== now) { show(best); }
    }
    (both ? area : plot).addEventListener("pointermove", nearest);
    (both ? area : plot).addEventListener("pointerdown", nearest);
    area.addEventListener("focus", function () { if (now < 0) { show(0); } });
    area.addEventListener("keydown", function (event) {
      var steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -points.length, End: points.length };
      if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in steps)) { return; }
      event.preventDefault();
      show(now + steps[event.key]);
    });
    told.textContent = "Point at the plot, or use the arrow keys in it.";
  }

  /* Several plots: all are brought in sight, all but the chosen one are hidden, on a screen. */
  function choose(figure) {
    var choices = JSON.parse(figure.dataset.choices), plots = Array.from(figure.querySelectorAll(".nb-one"));
    var names = plots.map(function (plot) { return JSON.parse(plot.dataset.name); }), fold = figure.querySelector(".nb-fold");
    if (plots.length < 2) { return; }
    var bar = document.createElement("div");
    bar.className = "nb-controls";
    figure.insertBefore(bar, figure.firstChild);
    var selects = choices.map(function (label, n) {
      var values = names.map(function (name) { return name[n]; }).filter(function (value, at, all) { return all.indexOf(value) === at; });
      return chooser(bar, label, values, show);
    });
    plots.forEach(function (plot) { figure.insertBefore(plot, fold); });
    fold.remove();
    function show() {
      var wanted = selects.map(function (select) { return select.value; }), found = false;
      names.forEach(function (name, n) {
        var on = name.join("\n") === wanted.join("\n");
        plots[n].classList.toggle("nb-off", !on);
        found = found || on;
      });
      bar.classList.toggle("nb-none", !found);
    }
    show();
  }

  function start() {
    document.querySelectorAll(".nb-points").forEach(function (figure) {
      choose(figure);
      figure.querySelectorAll(".nb-plot").forEach(enliven);
    });
  }
  if (document.readyState === "loading") { document.addEventListener("DOMContentLoaded", start); } else { start(); }
})();
