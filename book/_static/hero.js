/* Pictures one can touch. Their numbers stand in the page; without this file the still pictures stay.
   #picture-hero: neurons of a network epoch by epoch. #picture-density: a few of them at any density. */
(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg", WIDTH = 560, HEIGHT = 450, MARGIN = 12, PAUSE = 1000;

  function make(parent, name, attributes, text) {
    var drawn = /^(svg|g|path|circle|line|text)$/.test(name);
    var node = drawn ? document.createElementNS(SVG, name) : document.createElement(name);
    Object.keys(attributes || {}).forEach(function (key) { node.setAttribute(key, attributes[key]); });
    if (text !== undefined) { node.textContent = text; }
    parent.appendChild(node);
    return node;
  }
  function tone(colour) { return colour >= 0 ? "tone-" + colour : "tone-none"; }
  function begin(id) {
    var figure = document.getElementById(id);
    if (!figure) { return null; }
    var data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    var live = document.createElement("div");
    live.className = "nb-live";
    figure.insertBefore(live, figure.firstChild);
    figure.classList.add("is-live");
    return { figure: figure, data: data, live: live };
  }
  function slider(parent, label, low, high, value, moved) {
    var input = make(parent, "input", { type: "range", min: low, max: high, step: 1, value: value, "aria-label": label });
    input.addEventListener("input", function () { moved(Number(input.value)); });
    return input;
  }
  /* The theme turns pages with the arrow keys; inside a picture they belong to it. */
  function keys(live, step, space) {
    live.addEventListener("keydown", function (event) {
      var by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      var plain = !event.altKey && !event.ctrlKey && !event.metaKey;
      if (by && plain) {
        step(by);
      } else if (event.key === " " && space && event.target.tagName !== "BUTTON") {
        space();
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
  }

  function hero(here) {
    var data = here.data, last = data.epochs.length - 1, count = data.layers.length, now = last, timer = null;
    var x = data.places[0].map(function (a) { return MARGIN + a * (WIDTH - 2 * MARGIN); });
    var y = data.places[1].map(function (a) { return MARGIN + a * (HEIGHT - 2 * MARGIN); });
    var stage = make(here.live, "svg", { viewBox: "0 0 " + WIDTH + " " + HEIGHT, role: "img", tabindex: "0" });
    var edges = make(stage, "g", {});
    var layers = data.epochs.map(function (epoch) {
      var paths = {}, number = 0, layer = make(edges, "g", { "class": "epoch" });
      epoch.pairs.forEach(function (gap) {
        number += gap;
        var i = Math.floor(number / count), j = number % count;
        var inside = epoch.colours[i] === epoch.colours[j] ? epoch.colours[i] : -1;
        paths[inside] = (paths[inside] || "") + "M" + x[i].toFixed(0) + " " + y[i].toFixed(0) + "L" + x[j].toFixed(0) + " " + y[j].toFixed(0);
      });
      Object.keys(paths).sort().forEach(function (c) { make(layer, "path", { "class": "edge " + tone(Number(c)), d: paths[c] }); });
      return layer;
    });
    var dots = x.map(function (a, i) { return make(stage, "circle", { cx: a.toFixed(1), cy: y[i].toFixed(1), r: 4 }); });
    var names = data.groups.map(function (group) {
      var place = [group.place[0] * (WIDTH - 2 * MARGIN), group.place[1] * (HEIGHT - 2 * MARGIN)];
      return make(stage, "text", { "class": "name", x: MARGIN + place[0], y: MARGIN + place[1] + 7, "text-anchor": "middle", "font-size": 20 }, group.classes.join(" "));
    });
    var bar = make(here.live, "div", { "class": "nb-controls" });
    var button = make(bar, "button", { type: "button" }, "\u25b6 Play");
    var range = slider(bar, "Epoch", 0, last, last, function (value) { stop(); show(value); });
    var told = make(bar, "output", { "aria-live": "polite" });
    var mark = here.figure.querySelector(".now"), head = here.figure.querySelector(".nb-read thead tr");
    var title = make(head, "th", { scope: "col", "class": "shown" }), cells = {};
    here.figure.querySelectorAll(".nb-read tbody tr").forEach(function (row) {
      cells[row.dataset.key] = make(row, "td", { "class": "shown" });
    });
    var right = Number(mark.getAttribute("x1")), left = Number(here.figure.querySelector(".nb-side .grid").getAttribute("x1"));

    function show(epoch) {
      now = Math.max(0, Math.min(last, epoch));
      var found = data.epochs[now], words = now ? "epoch " + now + " of " + last : "untrained";
      layers.forEach(function (layer, n) { layer.classList.toggle("on", n === now); });
      dots.forEach(function (dot, i) {
        var colour = found.colours[i];
        dot.setAttribute("class", "neuron " + tone(colour));
        dot.setAttribute("r", colour >= 0 ? 4 : 2.5);
      });
      names.forEach(function (name) { name.classList.toggle("on", now === last); });
      range.value = now;
      range.setAttribute("aria-valuetext", words);
      told.textContent = words + ", Q " + found.modularity.toFixed(2) + ", test accuracy " + found.accuracy.toFixed(3);
      title.textContent = now ? "epoch " + now : words;
      Object.keys(cells).forEach(function (key) { cells[key].textContent = found[key].toFixed(key === "accuracy" ? 3 : 2); });
      var at = left + (right - left) * now / last;
      mark.setAttribute("x1", at);
      mark.setAttribute("x2", at);
      stage.setAttribute("aria-label", "Neurons in " + found.communities + " communities, " + told.textContent);
    }
    function stop() {
      window.clearInterval(timer);
      timer = null;
      button.textContent = "\u25b6 Play";
      told.setAttribute("aria-live", "polite");
    }
    function play() {
      if (timer !== null) { stop(); return; }
      if (now === last) { show(0); }
      button.textContent = "\u275a\u275a Pause";
      told.setAttribute("aria-live", "off");
      timer = window.setInterval(function () {
        show(now + 1);
        if (now === last) { stop(); }
      }, PAUSE);
    }
    button.addEventListener("click", play);
    keys(here.live, function (by) { stop(); show(now + by); }, play);
    show(last);
  }

  function density(here) {
    var data = here.data, count = data.colours.length, pairs = [], centre = 165, radius = 135;
    var start = data.densities[0].percent, most = data.densities.length - 1 + start, now;
    for (var i = 0; i < count; i++) { for (var j = i + 1; j < count; j++) { pairs.push([i, j, data.counts[pairs.length]]); } }
    var falling = data.counts.slice().sort(function (a, b) { return b - a; });
    var at = data.colours.map(function (_, i) {
      var turn = 2 * Math.PI * i / count - Math.PI / 2;
      return [centre + radius * Math.cos(turn), centre + radius * Math.sin(turn)];
    });
    var stage = make(here.live, "svg", { viewBox: "0 0 330 330", role: "img", tabindex: "0" });
    var lines = pairs.map(function (pair) {
      var a = at[pair[0]], b = at[pair[1]];
      return make(stage, "line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1] });
    });
    var dots = at.map(function (place) { return make(stage, "circle", { cx: place[0], cy: place[1], r: 8 }); });
    var bar = make(here.live, "div", { "class": "nb-controls" });
    make(bar, "span", {}, "density");
    var range = slider(bar, "Density, per cent of pairs", start, most, 5, show);
    var told = make(bar, "output", { "aria-live": "polite" });

    /* All ties at the threshold are edges; pairs that never fire together are none. */
    function threshold(percent) { return Math.max(1, falling[Math.ceil(percent * falling.length / 100) - 1]); }
    /* Q = sum over communities of inside / m - (strength / 2m)². */
    function modularity(labels, least) {
      var total = 0, inside = {}, strength = {};
      pairs.forEach(function (pair) {
        if (pair[2] < least) { return; }
        var a = labels[pair[0]], b = labels[pair[1]];
        total += pair[2];
        strength[a] = (strength[a] || 0) + pair[2];
        strength[b] = (strength[b] || 0) + pair[2];
        if (a === b) { inside[a] = (inside[a] || 0) + pair[2]; }
      });
      return Object.keys(strength).reduce(function (sum, c) {
        return sum + (inside[c] || 0) / total - Math.pow(strength[c] / (2 * total), 2);
      }, 0);
    }
    function show(percent) {
      now = Math.max(start, Math.min(most, percent));
      var found = data.densities[now - start], least = threshold(now), drawn = 0;
      lines.forEach(function (line, n) {
        var on = pairs[n][2] >= least, a = found.colours[pairs[n][0]], same = a >= 0 && a === found.colours[pairs[n][1]];
        drawn += on;
        line.setAttribute("class", on ? "edge strong " + tone(same ? a : -1) : "edge off");
      });
      dots.forEach(function (dot, i) { dot.setAttribute("class", "neuron " + tone(found.colours[i])); });
      range.value = now;
      range.setAttribute("aria-valuetext", now + " %");
      told.textContent = now + " % of pairs, " + drawn + " edges, " + found.communities + " communities, Q " + modularity(found.labels, least).toFixed(2);
      stage.setAttribute("aria-label", count + " neurons in a circle, " + told.textContent);
    }
    keys(here.live, function (by) { show(now + by); });
    show(5);
  }

  function start() {
    var pictures = { "picture-hero": hero, "picture-density": density };
    Object.keys(pictures).forEach(function (id) {
      var here = begin(id);
      if (here) { pictures[id](here); }
    });
  }
  if (document.readyState === "loading") { document.addEventListener("DOMContentLoaded", start); } else { start(); }
})();
