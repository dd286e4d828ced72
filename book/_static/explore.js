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
  function enliven(plot, points) {
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

  /* --- The explorer: the same plot, drawn here. */
  var DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", STEPS = 64 * 64 - 2, BLUE = "#3860d6";
  var COLOURS = ["#cf8f1c", BLUE, "#18ab60", "#c88cbc", "#bc1a16"];

  /* Two letters are a number between `lo` and `hi`; "__" is none. */
  function decode(kept) {
    var found = [];
    for (var i = 0; i < kept.v.length; i += 2) {
      var code = 64 * DIGITS.indexOf(kept.v[i]) + DIGITS.indexOf(kept.v[i + 1]);
      found.push(code > STEPS ? NaN : kept.lo + (kept.hi - kept.lo) * code / STEPS);
    }
    return found;
  }
  function words(value) { return String(Number(value.toPrecision(3))).replace("-", "\u2212"); }

  /* Round numbers over a range, and where they lie in thousandths. */
  function scale(values) {
    var known = values.filter(isFinite), low = Math.min.apply(null, known), high = Math.max.apply(null, known);
    var raw = (high - low) / 4 || Math.abs(high) || 1, size = Math.pow(10, Math.floor(Math.log10(raw)));
    var step = [1, 2, 5, 10].map(function (m) { return m * size; }).filter(function (one) { return one >= raw * 0.999; })[0];
    var first = Math.floor(low / step) * step, last = Math.max(Math.ceil(high / step) * step, first + step), ticks = [];
    for (var tick = first; tick < last + step / 2; tick += step) { ticks.push(Number(tick.toPrecision(9))); }
    return { ticks: ticks, place: function (value) { return Math.round(10000 * (value - first) / (last - first)) / 10; } };
  }

  function stroke(svg, d, colour, width, opacity, round) {
    var path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    var look = { d: d, fill: "none", stroke: colour, "stroke-width": width, "stroke-opacity": opacity, "vector-effect": "non-scaling-stroke" };
    Object.keys(look).forEach(function (key) { path.setAttribute(key, look[key]); });
    if (round) { path.style.strokeLinecap = "round"; }
    svg.appendChild(path);
  }

  /* Axes, and an empty drawing between them. */
  function frame(parent, xs, ys, x, y) {
    var plot = make(parent, "div", { "class": "nb-plot" });
    make(plot, "p", { "class": "nb-title" }, y);
    var upright = make(plot, "div", { "class": "nb-upright", "aria-hidden": "true" });
    var area = make(plot, "div", { "class": "nb-area", role: "img" });
    var level = make(plot, "div", { "class": "nb-level", "aria-hidden": "true" });
    make(plot, "p", { "class": "nb-along" }, x);
    var svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 1000 1000");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    area.appendChild(svg);
    ys.ticks.forEach(function (tick) {
      make(upright, "span", { style: "top:" + (100 - ys.place(tick) / 10) + "%" }, words(tick));
      stroke(svg, "M0 " + (1000 - ys.place(tick)) + "h1000", "currentColor", 1, 0.16);
    });
    xs.ticks.forEach(function (tick) {
      make(level, "span", { style: "left:" + xs.place(tick) / 10 + "%" }, words(tick));
      stroke(svg, "M" + xs.place(tick) + " 0v1000", "currentColor", 1, 0.16);
    });
    return { plot: plot, area: area, svg: svg };
  }

  function legend(plot, levels) {
    var around = make(plot, "p", { "class": "nb-legend" });
    levels.forEach(function (level, n) {
      var one = make(around, "span", {});
      make(one, "i", { style: "background:" + COLOURS[n] });
      one.appendChild(document.createTextNode(level));
    });
  }

  /* A dot for each network; what it says: its value, and how it was trained. */
  function dots(parent, group, along, measure) {
    var x = decode(group.x[along]), y = decode(group.y[measure]), xs = scale(x), ys = scale(y);
    var made = frame(parent, xs, ys, along, measure), paths = {}, points = [];
    x.forEach(function (value, n) {
      if (!isFinite(value) || !isFinite(y[n])) { return; }
      var colour = group.colour ? COLOURS[group.colour.v[n]] : BLUE, a = xs.place(value), b = 1000 - ys.place(y[n]);
      paths[colour] = (paths[colour] || "") + "M" + a + " " + b + "h.1";
      var trained = (group.settings || []).map(function (one) { return one.name + " " + one.levels[DIGITS.indexOf(one.v[n])]; });
      points.push([a, b, measure + " " + words(y[n]) + ", " + along + " " + words(value) + (trained.length ? "; " + trained.join(", ") : "") + "."]);
    });
    Object.keys(paths).forEach(function (colour) { stroke(made.svg, paths[colour], colour, 6, 0.75, true); });
    if (group.colour) { legend(made.plot, group.colour.levels); }
    points.sort(function (a, b) { return a[0] - b[0]; });
    return { made: made, points: points };
  }

  /* A thin line for each run, a thick one for their mean, whose points say what they are. */
  function lines(parent, group, along, measure) {
    var y = decode(group.y[measure]), across = decode(group.x[along]), points = [], mean = "", count = group.epochs;
    var x = y.map(function (_, n) { return along === "epoch" ? across[n % count] : across[n]; });
    x = x.map(function (value, n) { return isFinite(y[n]) ? value : NaN; });
    var xs = scale(x), ys = scale(y), made = frame(parent, xs, ys, along, measure);
    for (var run = 0; run < group.n; run++) {
      var d = "";
      for (var epoch = 0; epoch < count; epoch++) {
        var n = run * count + epoch;
        if (isFinite(x[n]) && isFinite(y[n])) { d += (d ? "L" : "M") + xs.place(x[n]) + " " + (1000 - ys.place(y[n])); }
      }
      stroke(made.svg, d, BLUE, 1, 0.55);
    }
    for (epoch = 0; epoch < count; epoch++) {
      var here = [], there = [];
      for (run = 0; run < group.n; run++) {
        n = run * count + epoch;
        if (isFinite(x[n]) && isFinite(y[n])) { here.push(y[n]); there.push(x[n]); }
      }
      if (here.length < group.n) { break; } /* runs that ended earlier would make the mean jump */
      var average = function (values) { return values.reduce(function (a, b) { return a + b; }, 0) / values.length; };
      var a = xs.place(average(there)), b = 1000 - ys.place(average(here));
      mean += (mean ? "L" : "M") + a + " " + b;
      points.push([a, b, "Epoch " + epoch + ": " + measure + " " + words(average(here)) + " in the mean of " + group.n + " runs, from " +
        words(Math.min.apply(null, here)) + " to " + words(Math.max.apply(null, here)) + (along === "epoch" ? "." : "; " + along + " " + words(average(there)) + ".")]);
    }
    stroke(made.svg, mean, "currentColor", 3, 0.9);
    return { made: made, points: points };
  }

  /* What is drawn, as CSV: a row for each network, or for each epoch of each run. */
  function table(group, along, measure) {
    var y = decode(group.y[measure]), x = decode(group.x[along]), count = group.kind === "lines" ? group.epochs : 1, settings = group.settings || [];
    var head = (count > 1 ? ["run", "epoch"] : ["network"]).concat(along === "epoch" ? [] : [along], [measure], settings.map(function (one) { return one.name; }));
    var rows = y.map(function (value, n) {
      var start = count > 1 ? [Math.floor(n / count) + 1, n % count] : [n + 1], at = along === "epoch" ? [] : [x[n]];
      var numbers = at.concat([value]).map(function (one) { return isFinite(one) ? Number(one.toPrecision(3)) : ""; });
      return start.concat(numbers, settings.map(function (one) { return one.levels[DIGITS.indexOf(one.v[n])]; }));
    });
    return [head].concat(rows).map(function (row) {
      return row.map(function (cell) { return /[",]/.test(cell) ? '"' + String(cell).replace(/"/g, '""') + '"' : cell; }).join(",");
    }).join("\r\n") + "\r\n";
  }

  function explore(figure) {
    var data = JSON.parse(figure.querySelector("script").textContent), live = document.createElement("div");
    live.className = "nb-live";
    figure.classList.add("is-live");
    figure.insertBefore(live, figure.firstChild);
    var bar = make(live, "div", { "class": "nb-controls" });
    var set = chooser(bar, "data set", data.sets.map(function (one) { return one.title; }), function () { fill(1); });
    var networks = chooser(bar, "networks", [], function () { fill(2); });
    var measure = chooser(bar, "measure", [], function () { fill(3); });
    var along = chooser(bar, "along", [], draw);
    var said = make(live, "output", { "class": "nb-said", "aria-live": "polite" }), stage = make(live, "div", {}), group;
    var saved = make(figure.querySelector("figcaption"), "a", { "class": "nb-data", download: "networks.csv" }, "Values (CSV)");
    saved.setAttribute("aria-label", "Values (CSV) of this figure");
    saved.before(" ");

    /* What can be chosen follows from what was chosen before it; a choice stays where it still can be made. */
    function refill(select, values, anew) {
      var before = anew ? "" : select.value;
      select.textContent = "";
      values.forEach(function (value) { make(select, "option", { value: value }, value); });
      select.value = values.indexOf(before) >= 0 ? before : values[0];
      select.disabled = values.length < 2;
    }
    function fill(level) {
      var groups = data.sets[set.selectedIndex].groups;
      if (level < 2) { refill(networks, groups.map(function (one) { return one.title; })); }
      group = groups[networks.selectedIndex];
      if (level < 3) { refill(measure, Object.keys(group.y)); }
      refill(along, Object.keys(group.x), level < 3);
      draw();
    }
    function draw() {
      stage.textContent = "";
      var drawn = (group.kind === "dots" ? dots : lines)(stage, group, along.value, measure.value);
      var estimate = (group.estimates[along.value] || {})[measure.value] || "unknown";
      said.textContent = set.value + ", " + group.title + ". " +
        group.said[along.value].replace("{n}", group.n).replace("{measure}", measure.value).replace("{estimate}", estimate);
      drawn.made.plot.dataset.nearest = group.kind === "lines" && along.value === "epoch" ? "x" : "xy";
      drawn.made.area.setAttribute("aria-label", said.textContent);
      enliven(drawn.made.plot, drawn.points);
      saved.href = "data:text/csv;charset=utf-8," + encodeURIComponent(table(group, along.value, measure.value));
    }
    set.value = data.sets.some(function (one) { return one.title === "KMNIST"; }) ? "KMNIST" : set.value;
    fill(1);
  }

  function start() {
    document.querySelectorAll(".nb-points").forEach(function (figure) {
      choose(figure);
      figure.querySelectorAll(".nb-plot").forEach(function (plot) {
        enliven(plot, JSON.parse(plot.querySelector("script").textContent));
      });
    });
    document.querySelectorAll(".nb-explorer").forEach(explore);
  }
  if (document.readyState === "loading") { document.addEventListener("DOMContentLoaded", start); } else { start(); }
})();
