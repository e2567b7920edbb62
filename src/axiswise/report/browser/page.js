"use strict";
// The page: sliders for the latents of the member that leads, and images of all members whose decoders run.
//
// Every member has a code z. What sliders show is y = R z, where R rotates two latents by the angle of the knob; without
// a rotation y is z. A slider of the leading member moves its counterpart in the others, in units of their codes' spread.

(() => {
  const data = JSON.parse(document.getElementById("exploration").textContent);
  const images = data.shape.length === 3;
  const UNSEEN = 2; // the code whose image PyTorch decoded, too: one that the decoder was not traced with
  const DTO_POINTS = 8;
  const STEPS = 40; // key presses from one end of a latent to the other
  const VALUES = 400; // that a number field steps through
  const PLAY_SECONDS = 5;
  const starts = decoder.bytes(data.x);
  const numbersEach = data.shape.reduce((a, b) => a * b, 1);

  // ---- elements ----

  /** An element with text, properties and children; text never becomes markup. */
  function make(name, properties = {}, ...children) {
    const found = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key in found && !key.startsWith("aria")) found[key] = value;
      else found.setAttribute(key, value);
    }
    found.append(...children);
    return found;
  }

  const place = (name) => document.getElementById(name);
  const format = (value, digits = 3) => (Number.isFinite(value) ? value.toPrecision(digits).replace("-", "−") : "–");
  const fixed = (value) => (Number.isFinite(value) ? value.toFixed(2).replace("-", "−") : "–");
  /** With as many digits as the steps of a slider have that goes so far, and two at least. */
  const stepped = (value, far) => value.toFixed(Math.min(Math.max(Math.ceil(-Math.log10(far / VALUES)), 2), 20));
  const percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(0)} %` : "–");

  // ---- members ----

  /** A, B, …, Z, AA, AB, …. */
  const letterOf = (number) => (number < 26 ? "" : letterOf(Math.floor(number / 26) - 1)) + String.fromCharCode(65 + number % 26);
  const floats = (text) => new Float32Array(decoder.bytes(text).buffer);

  function column(codes, latents, latent) {
    return Float64Array.from({ length: codes.length / latents }, (_, row) => codes[row * latents + latent]);
  }

  function deviation(values) {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length);
  }

  const members = data.members.map((own, number) => {
    const codes = floats(own.codes), latents = own.low.length;
    const spread = Array.from({ length: latents }, (_, latent) => deviation(column(codes, latents, latent)) || 1);
    return {
      ...own, number, codes, latents, spread, letter: letterOf(number), prepared: decoder.prepare(own),
      z: new Float64Array(latents), origin: new Float64Array(latents), grams: new Map(), reaches: new Map(), here: null,
    };
  });

  const state = {
    lead: members[0], start: 0, hand: 0, across: 0, up: 0, angle: 0, playing: null,
  };

  /** How much a latent holds: its divergence, or the spread of codes without noise. */
  const weightOf = (member, latent) => (member.kl ? member.kl[latent] : member.spread[latent]);

  function ordered(member) {
    return Array.from({ length: member.latents }, (_, latent) => latent)
      .sort((a, b) => member.active[b] - member.active[a] || weightOf(member, b) - weightOf(member, a) || a - b);
  }

  /** The counterpart in a member of a latent of the one that leads: its number, sign and correlation; or null. */
  function counterpart(member, latent) {
    if (member === state.lead) return { latent, sign: 1, correlation: 1 };
    const found = state.lead.counterparts[member.number][latent];
    if (found < 0) return null;
    const correlation = state.lead.correlations[member.number][latent];
    return { latent: found, sign: Math.sign(correlation), correlation };
  }

  /** The rotation of a member: two of its latents and an angle; null where a latent has no counterpart. */
  function rotation(member) {
    const first = counterpart(member, state.across), second = counterpart(member, state.up);
    if (!first || !second || first.latent === second.latent) return null;
    const angle = state.angle * first.sign * second.sign;
    return { first: first.latent, second: second.latent, cosine: Math.cos(angle), sine: Math.sin(angle), angle };
  }

  /** y = R z, or z = Rᵀ y. */
  function turned(member, vector, back = false) {
    const found = Float64Array.from(vector), turn = rotation(member);
    if (turn && state.angle !== 0) {
      const { first, second, cosine } = turn, sine = back ? -turn.sine : turn.sine;
      found[first] = cosine * vector[first] - sine * vector[second];
      found[second] = sine * vector[first] + cosine * vector[second];
    }
    return found;
  }

  function latentName(member, latent) {
    const turn = rotation(member);
    return `z${latent}` + (turn && state.angle !== 0 && [turn.first, turn.second].includes(latent) ? "′" : "");
  }

  /** The ends of a slider; those of rotated latents are far enough apart for all codes of their plane. */
  function ends(latent) {
    const { low, high, codes, latents, reaches } = state.lead, pair = [state.across, state.up];
    if (state.angle === 0 || !pair.includes(latent)) return [low[latent], high[latent]];
    const key = String([...pair].sort());
    if (!reaches.has(key)) {
      const [first, second] = pair.map((each) => column(codes, latents, each));
      reaches.set(key, first.reduce((far, value, row) => Math.max(far, Math.hypot(value, second[row])), 0));
    }
    return [Math.min(low[latent], -reaches.get(key)), Math.max(high[latent], reaches.get(key))];
  }

  // ---- moving ----

  function startFrom(start) {
    state.start = start;
    for (const member of members) {
      member.origin = start < 0 ? Float64Array.from(member.centre)
        : Float64Array.from(member.codes.subarray(start * member.latents, (start + 1) * member.latents));
      member.z = Float64Array.from(member.origin);
    }
    stop();
    changed({ all: true });
  }

  /** Moves latents of the leading member to values, and their counterparts alike. */
  function move(values) {
    const before = turned(state.lead, state.lead.origin);
    for (const member of members) {
      const y = turned(member, member.z), own = turned(member, member.origin);
      for (const [latent, value] of values) {
        const found = counterpart(member, latent);
        if (!found) continue;
        const scale = member === state.lead ? 1 : found.sign * member.spread[found.latent] / state.lead.spread[latent];
        y[found.latent] = own[found.latent] + (value - before[latent]) * scale;
      }
      member.z = turned(member, y, true);
    }
    changed({});
  }

  function take(latent) {
    if (state.hand === latent) return;
    state.hand = latent;
    changed({ hand: true });
  }

  function play(latent) {
    const again = state.playing && state.playing.latent === latent;
    stop();
    if (again) return;
    take(latent);
    const [low, high] = ends(latent), value = turned(state.lead, state.lead.z)[latent];
    const share = Math.min(Math.max((value - low) / (high - low), 0), 1);
    state.playing = { latent, began: performance.now() - (Math.acos(1 - 2 * share) / (2 * Math.PI)) * PLAY_SECONDS * 1000 };
    drawSliders();
  }

  function stop() {
    state.playing = null;
  }

  function advance(now) {
    if (!state.playing) return;
    const { latent, began } = state.playing, [low, high] = ends(latent);
    const phase = 2 * Math.PI * (now - began) / 1000 / PLAY_SECONDS;
    move([[latent, low + (high - low) * (1 - Math.cos(phase)) / 2]]);
  }

  // ---- drawing ----

  let waiting = null, idle = 0;

  /** Draws at the next frame what has changed; what is slow, once nothing has changed for a moment. */
  function changed(what) {
    if (!what.hand && !what.look) for (const member of members) member.here = null; // its code, or which latents are turned
    if (!waiting) requestAnimationFrame(draw);
    waiting = { ...waiting, ...what };
    page.measuring = true;
    clearTimeout(idle);
    idle = setTimeout(measure, 150);
  }

  function draw() {
    const what = waiting, began = performance.now();
    if (!what) return;
    waiting = null;
    if (what.all || what.build) buildLatents();
    if (what.all || what.build || what.look) {
      drawHistograms();
      measureStage();
    }
    if (what.all) {
      drawStarts();
      drawOriginal();
    }
    for (const member of members) drawMember(member, what);
    drawSliders();
    drawCodePlane();
    if (state.playing) requestAnimationFrame(advance);
    page.milliseconds = performance.now() - began;
  }

  /** Pixels of values (channels, rows, columns) on a canvas, from black at low to white at high. */
  function paint(canvas, values, low, high) {
    const [channels, height, width] = data.shape;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d"), pixels = context.createImageData(width, height), area = height * width;
    for (let i = 0; i < area; i++) {
      for (let c = 0; c < 3; c++) {
        pixels.data[4 * i + c] = 255 * (values[(channels === 3 ? c : 0) * area + i] - low) / (high - low);
      }
      pixels.data[4 * i + 3] = 255;
    }
    context.putImageData(pixels, 0, 0);
  }

  /** The direction of a latent as sliders show it, in the coordinates of the decoder. */
  function direction(member, latent) {
    const unit = new Float64Array(member.latents);
    unit[latent] = 1;
    return turned(member, unit, true);
  }

  /** What one starts from, before what is made of it; the prior's mean is no image. */
  function drawOriginal() {
    place("original").hidden = !images || state.start < 0;
    if (images && state.start >= 0) {
      paint(place("original-image"), starts.subarray(state.start * numbersEach, (state.start + 1) * numbersEach), 0, 255);
    }
  }

  function drawMember(member, what) {
    const own = counterpart(member, state.hand), parts = member.parts;
    const found = decoder.run(member.prepared, member.z, own ? [direction(member, own.latent)] : []);
    member.shown = found.value;
    const name = own ? latentName(member, own.latent) : "";
    parts.card.classList.toggle("unmatched", !own);
    parts.card.classList.toggle("leading", member === state.lead);
    parts.note.textContent = !own ? `stands still: no counterpart of ${latentName(state.lead, state.hand)}`
      : member === state.lead ? `leads: ${name} moves`
        : `${name} moves along${own.sign < 0 ? ", reversed" : ""} (${fixed(Math.abs(own.correlation))})`;
    parts.note.title = own && member !== state.lead ? `Correlation of codes with ${latentName(state.lead, state.hand)}: ${fixed(own.correlation)}` : "";
    if (images) {
      paint(parts.image, found.value, ...data.range);
      drawSlope(member, own && found.derivatives[0], name);
    } else {
      drawPlane(member, found.value, own && found.derivatives[0]);
    }
    if (images && (what.all || what.build)) {
      parts.original.hidden = state.start < 0;
      parts.reconstruction.hidden = state.start < 0;
      if (state.start >= 0) {
        paint(parts.originalImage, starts.subarray(state.start * numbersEach, (state.start + 1) * numbersEach), 0, 255);
        paint(parts.reconstructionImage, decoder.run(member.prepared, member.origin).value, ...data.range);
      }
    }
  }

  function drawSlope(member, slope, name) {
    const { slopeImage, slopeNote } = member.parts;
    if (!slope) {
      paint(slopeImage, new Float64Array(numbersEach), -1, 1);
      slopeNote.textContent = "no counterpart";
      return;
    }
    let largest = 0;
    for (const value of slope) largest = Math.max(largest, Math.abs(value));
    paint(slopeImage, slope, -largest || -1, largest || 1);
    slopeNote.textContent = `∂x/∂${name}, up to ${format(largest, 2)}`;
  }

  // ---- vectors ----

  const axes = images ? null : { centre: data.centre, rows: data.axes, cloud: data.cloud };

  function projected(vector, difference = false) {
    return axes.rows.map((row) => row.reduce((sum, weight, i) => sum + weight * (vector[i] - (difference ? 0 : axes.centre[i])), 0));
  }

  /** The two ends of each axis of a plot: those of some points, with a margin. */
  function limits(points) {
    return [0, 1].map((axis) => {
      const low = points.reduce((least, point) => Math.min(least, point[axis]), Infinity);
      const high = points.reduce((most, point) => Math.max(most, point[axis]), -Infinity);
      const margin = 0.12 * (high - low) || 1;
      return [low - margin, high + margin];
    });
  }

  /** A canvas ready to plot on, and the place of a point; the vertical axis points up. */
  function plot(canvas, ranges) {
    const size = canvas.clientWidth || 240, ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [size * ratio, size * ratio];
    const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    context.scale(ratio, ratio);
    const at = (point) => [
      size * (point[0] - ranges[0][0]) / (ranges[0][1] - ranges[0][0]),
      size - size * (point[1] - ranges[1][0]) / (ranges[1][1] - ranges[1][0]),
    ];
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    return { context, at, colour, size };
  }

  function dot(context, [x, y], radius) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }

  /** Data, the image of the plane of two latents, the decoded point and the direction in which the latent moves it. */
  function drawPlane(member, value, slope) {
    const { context, at, colour } = plot(member.parts.image, limits(axes.cloud));
    context.fillStyle = colour("muted");
    for (const point of axes.cloud) dot(context, at(point), 1.2);
    context.strokeStyle = colour("accent");
    context.lineWidth = 0.8;
    const turn = rotation(member), [one, other = one] = turn ? [turn.first, turn.second] : ordered(member);
    const code = turned(member, member.z);
    for (const [moving, still] of [[one, other], [other, one]]) {
      for (let line = 0; line <= 6; line++) {
        context.beginPath();
        for (let step = 0; step <= 24; step++) {
          const point = Float64Array.from(code);
          point[still] = member.low[still] + (member.high[still] - member.low[still]) * line / 6;
          point[moving] = member.low[moving] + (member.high[moving] - member.low[moving]) * step / 24;
          const [x, v] = at(projected(decoder.run(member.prepared, turned(member, point, true)).value));
          if (step) context.lineTo(x, v);
          else context.moveTo(x, v);
        }
        context.stroke();
      }
    }
    const [x, y] = at(projected(value));
    context.fillStyle = context.strokeStyle = colour("ink");
    if (slope) {
      const [dx, dy] = projected(slope, true), [tipX, tipY] = at([projected(value)[0] + dx, projected(value)[1] + dy]);
      context.lineWidth = 2.5;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(tipX, tipY);
      context.stroke();
    }
    if (state.start >= 0) {
      const original = data.starts[state.start];
      const [ox, oy] = at(projected(original));
      context.lineWidth = 1.5;
      context.strokeRect(ox - 5, oy - 5, 10, 10);
    }
    dot(context, [x, y], 5);
  }

  /** Codes of the leading member in the plane of the two latents, and where it is now. */
  function drawCodePlane() {
    const canvas = place("codes"), member = state.lead, pair = [state.across, state.up];
    const ranges = pair.map((latent) => ends(latent));
    const { context, at, colour } = plot(canvas, ranges);
    context.strokeStyle = colour("rule");
    context.strokeRect(0, 0, canvas.clientWidth, canvas.clientWidth);
    context.fillStyle = colour("muted");
    for (let row = 0; row < member.codes.length / member.latents; row++) {
      const y = turned(member, member.codes.subarray(row * member.latents, (row + 1) * member.latents));
      dot(context, at(pair.map((latent) => y[latent])), 1.3);
    }
    const y = turned(member, member.z);
    context.fillStyle = colour("ink");
    dot(context, at(pair.map((latent) => y[latent])), 5);
    place("codes-note").textContent =
      `Codes of ${data.points} observations in ${member.letter}: ${latentName(member, pair[0])} across, ${latentName(member, pair[1])} up.`;
  }

  // ---- geometry ----

  /** JᵀJ of a member at a code, over latents of which the rest can be left out, as a matrix of all. */
  function gramAt(member, z) {
    const turn = rotation(member);
    const wanted = ordered(member).filter((latent) => member.active[latent] || (turn && [turn.first, turn.second].includes(latent)));
    const units = wanted.map((latent) => Float64Array.from({ length: member.latents }, (_, i) => Number(i === latent)));
    return { wanted, gram: geometry.gramOf(decoder.run(member.prepared, z, units).derivatives) };
  }

  /** Distance to orthogonality and share off the diagonal, over active latents of the rotated member; remembered. */
  function measured(member, known) {
    const { wanted, gram } = known, turn = rotation(member), angle = turn ? turn.angle : 0;
    if (known.angle === angle) return known.measures;
    const turnedGram = angle !== 0 ? geometry.rotated(gram, wanted.indexOf(turn.first), wanted.indexOf(turn.second), angle) : gram;
    const kept = wanted.map((latent, i) => (member.active[latent] ? i : -1)).filter((i) => i >= 0);
    const chosen = kept.map((i) => kept.map((j) => turnedGram[i][j]));
    const measures = [geometry.distanceToOrthogonality(chosen), geometry.offDiagonalShare(chosen)];
    return Object.assign(known, { angle, measures }).measures;
  }

  function pointsOf(member) {
    return Math.min(DTO_POINTS, Math.floor(member.codes.length / member.latents));
  }

  /** Key of what is remembered: the products depend on which two latents are rotated, not on the angle. */
  function pairKey(member) {
    const turn = rotation(member);
    return turn ? `${turn.first} ${turn.second}` : "";
  }

  /** Computes one thing that is missing, shows what there is, and comes back until nothing is missing. */
  function measure() {
    let busy = false;
    for (const member of members) {
      const key = pairKey(member);
      if (!member.here) {
        member.here = gramAt(member, member.z);
        busy = true;
      } else {
        if (!member.grams.has(key)) member.grams.set(key, []);
        const grams = member.grams.get(key);
        if (grams.length < pointsOf(member)) {
          const from = grams.length * member.latents;
          grams.push(gramAt(member, member.codes.subarray(from, from + member.latents)));
          busy = true;
        }
      }
      drawMeasures(member);
      if (busy) break;
    }
    if (busy && !state.playing) idle = setTimeout(measure, 0);
    page.measuring = busy;
  }

  function measures(member) {
    const grams = member.grams.get(pairKey(member)) || [];
    const all = grams.map((each) => measured(member, each));
    const mean = (k) => all.reduce((sum, each) => sum + each[k], 0) / all.length;
    return { here: member.here && measured(member, member.here), over: all.length ? [mean(0), mean(1)] : null, points: all.length };
  }

  function drawMeasures(member) {
    const { here, over, points } = measures(member), complete = points === pointsOf(member);
    const shown = (found, k, write) => (found ? write(found[k]) : "…");
    const cells = (name, k, write) => [name, shown(here, k, write), shown(complete && over, k, write)];
    const active = member.active.filter(Boolean).length, [chance, deviation] = member.chance || [];
    const notes = [
      complete && over[0] >= chance - deviation ? "At chance: its columns are no nearer to right angles than after a random rotation." : "",
      active === 0 ? "No latent is active: there is nothing to measure." : active === 1 ? "One latent is active: there is no other to be at right angles to." : "",
      active > 1 && member.scores.some((line) => line.startsWith("DtO")) ? `The DtO above is the record’s, over more ${images ? "images" : "points"} than this mean.` : "",
      state.angle !== 0 && !rotation(member) ? "Not rotated: one of the two latents has no counterpart." : "",
      `Its image differs from PyTorch’s by at most ${format(member.difference, 2)}.`,
    ];
    const row = (texts, kind) => make("tr", {}, ...texts.map((text, place) => make(place ? kind : "th", { textContent: text })));
    const table = make("table", { className: "measures" }, row(["", "here", `mean of ${pointsOf(member)} ${images ? "images" : "points"}`], "th"),
      ...(active < 2 ? [] : [row(cells("DtO", 0, fixed), "td"), ...(chance ? [row(["random rotation: DtO", fixed(chance), fixed(chance)], "td")] : []), row(cells("JᵀJ off its diagonal", 1, percent), "td")]));
    member.parts.facts.replaceChildren(...(active < 2 ? [] : [table]), ...notes.filter(Boolean).map((text) => make("p", { textContent: text })));
  }

  // ---- latents ----

  const rows = new Map();

  function buildLatents() {
    rows.clear();
    const order = ordered(state.lead), active = order.filter((latent) => state.lead.active[latent]);
    const passive = order.filter((latent) => !state.lead.active[latent]);
    place("sliders").replaceChildren(...active.map(slider));
    place("passive").replaceChildren(...passive.map(slider));
    place("passive-fold").hidden = !passive.length;
    place("passive-summary").textContent = passive.length === 1 ? "1 passive latent: it tells next to nothing"
      : `${passive.length} passive latents: they tell next to nothing`;
    place("no-active").hidden = active.length > 0;
    for (const select of [place("across"), place("up")]) {
      select.replaceChildren(...order.map((latent) => make("option", { value: latent, textContent: `z${latent}` + (state.lead.active[latent] ? "" : " (passive)") })));
    }
    place("across").value = state.across;
    place("up").value = state.up;
    for (const part of document.querySelectorAll(".of-two")) part.hidden = state.lead.latents < 2;
  }

  function slider(latent) {
    const [low, high] = ends(latent), step = Number(((high - low) / VALUES).toPrecision(1));
    const name = `z${latent}`;
    const range = make("input", { type: "range", step: "any", "aria-label": `${name}, slider` });
    const number = make("input", { type: "number", step, "aria-label": `${name}, value` });
    const button = make("button", { type: "button", className: "play" });
    const histogram = make("canvas", { className: "histogram", "aria-hidden": "true" });
    const label = make("span", { className: "latent-name", textContent: name }), kl = make("span", { className: "kl" });
    const holds = state.lead.kl ? `KL ${fixed(state.lead.kl[latent])} nats` : `spread ${format(state.lead.spread[latent], 2)}`;
    const others = members.filter((member) => member !== state.lead), alone = others.filter((member) => !counterpart(member, latent));
    const matches = make("div", { className: "matches" }, ...others.filter((member) => counterpart(member, latent)).map((member) => match(member, latent)),
      ...(alone.length ? [unmatched(alone)] : []));
    const row = make("div", { className: "latent", "data-latent": latent },
      make("div", { className: "latent-head" }, label, kl, number, button),
      histogram, range, matches);
    range.addEventListener("input", () => { stop(); take(latent); move([[latent, Number(range.value)]]); });
    // Keys move by a step that one can see; without a step of its own, the range takes any value.
    range.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5 }[event.key];
      const now = turned(state.lead, state.lead.z)[latent], [low, high] = ends(latent);
      const there = event.key === "Home" ? low : event.key === "End" ? high
        : steps && Math.min(Math.max(now + steps * (high - low) / STEPS, low), high);
      if (there === undefined) return;
      event.preventDefault();
      stop();
      take(latent);
      move([[latent, there]]);
    });
    number.addEventListener("change", () => {
      const value = Number(number.value);
      stop();
      take(latent);
      if (number.value !== "" && Number.isFinite(value)) move([[latent, value]]);
      else changed({});
    });
    button.addEventListener("click", () => { play(latent); changed({ hand: true }); });
    row.addEventListener("focusin", () => take(latent));
    row.addEventListener("pointerdown", () => take(latent));
    rows.set(latent, { row, range, number, button, histogram, label, kl, holds });
    return row;
  }

  function match(member, latent) {
    const found = counterpart(member, latent), strength = Math.abs(found.correlation);
    const title = `Counterpart in ${member.letter}: z${found.latent}, correlation of codes ${fixed(found.correlation)}`;
    const chip = make("span", { className: "match", title }, `${member.letter} z${found.latent} ${found.sign < 0 ? "(reversed) " : ""}${fixed(strength)}`);
    chip.style.setProperty("--strength", strength);
    return chip;
  }

  function unmatched(alone) {
    const title = "None of their latents shares at least half of this one's variance";
    return make("span", { className: "match none", title }, `no counterpart in ${alone.map((member) => member.letter).join(", ")}`);
  }

  function drawSliders() {
    const y = turned(state.lead, state.lead.z);
    for (const [latent, { row, range, number, button, label, kl, holds }] of rows) {
      const playing = Boolean(state.playing && state.playing.latent === latent);
      row.classList.toggle("in-hand", state.hand === latent);
      const [low, high] = ends(latent), value = stepped(y[latent], high - low);
      [range.min, range.max] = [low, high];
      range.value = y[latent];
      range.setAttribute("aria-valuetext", value);
      if (document.activeElement !== number || playing) number.value = value;
      label.textContent = latentName(state.lead, latent);
      kl.textContent = label.textContent === `z${latent}` ? holds : "rotated"; // its divergence is another one
      button.textContent = playing ? "❚❚" : "▶";
      button.setAttribute("aria-label", playing ? `Pause z${latent}` : `Play z${latent}`);
    }
    place("angle-value").textContent = `${Math.round(state.angle * 180 / Math.PI)}°`.replace("-", "−");
    place("rotates").textContent = `rotate z${state.across} and z${state.up}`;
    place("hand").textContent = latentName(state.lead, state.hand);
    place("drag-note").textContent = state.across === state.up ? "" :
      `Drag a picture: across moves ${latentName(state.lead, state.across)}, up and down ${latentName(state.lead, state.up)} (chosen below).`;
  }

  /** Where codes lie under each slider (bars) and the prior (line). */
  function drawHistograms() {
    const lead = state.lead, count = lead.codes.length / lead.latents, bins = data.bins, turn = rotation(lead);
    const y = Array.from({ length: count }, (_, row) => turned(lead, lead.codes.subarray(row * lead.latents, (row + 1) * lead.latents)));
    for (const [latent, { histogram }] of rows) {
      const [low, high] = ends(latent), counts = new Float64Array(bins);
      for (const code of y) {
        const bin = Math.floor(bins * (code[latent] - low) / (high - low));
        counts[Math.min(Math.max(bin, 0), bins - 1)] += 1 / count;
      }
      const moved = turn && state.angle !== 0 && [turn.first, turn.second].includes(latent);
      // The prior's bins are those of the slider before any rotation.
      const wider = (high - low) / (lead.high[latent] - lead.low[latent]);
      const prior = lead.prior && (!moved || lead.symmetric) ? lead.prior[latent].map((share) => share * wider) : null;
      const width = histogram.clientWidth || 300, height = 28, ratio = window.devicePixelRatio || 1;
      [histogram.width, histogram.height] = [width * ratio, height * ratio];
      const context = histogram.getContext("2d"), style = getComputedStyle(document.documentElement);
      context.scale(ratio, ratio);
      // Bars may be much taller than the prior: they are cut at three times its peak.
      const top = prior ? Math.min(Math.max(...counts, ...prior), 3 * Math.max(...prior)) : Math.max(...counts);
      context.fillStyle = style.getPropertyValue("--muted").trim();
      counts.forEach((share, bin) => {
        const tall = Math.min(share / top, 1) * (height - 2);
        context.fillRect(bin * width / bins, height - tall, Math.max(width / bins - 1, 1), tall);
      });
      if (prior) {
        context.strokeStyle = style.getPropertyValue("--ink").trim();
        context.lineWidth = 1.5;
        context.beginPath();
        prior.forEach((share, bin) => {
          const value = lead.low[latent] + (bin + 0.5) * (lead.high[latent] - lead.low[latent]) / bins;
          context.lineTo(width * (value - low) / (high - low), height - Math.min(share / top, 1) * (height - 2));
        });
        context.stroke();
      }
    }
  }

  // ---- what is built once ----

  function drawStarts() {
    for (const button of document.querySelectorAll(".start")) {
      const chosen = Number(button.dataset.start) === state.start;
      button.setAttribute("aria-pressed", String(chosen));
    }
  }

  function buildStarts() {
    const count = images ? starts.length / numbersEach : data.starts.length;
    const buttons = Array.from({ length: count }, (_, start) => {
      const button = make("button", { type: "button", className: "start", "data-start": start, "aria-label": `Start from observation ${start + 1}` });
      if (images) {
        const canvas = make("canvas", {});
        paint(canvas, starts.subarray(start * numbersEach, (start + 1) * numbersEach), 0, 255);
        button.append(canvas);
      } else {
        button.textContent = String(start + 1);
      }
      return button;
    });
    const mean = make("button", { type: "button", className: "start", "data-start": -1, textContent: members.some((member) => member.prior) ? "prior’s mean" : "mean code" });
    for (const button of [...buttons, mean]) button.addEventListener("click", () => startFrom(Number(button.dataset.start)));
    place("starts").replaceChildren(...buttons);
    place("neutral").prepend(mean);
  }

  /** Takes one of the two latents of the plane in hand, unless one of them is. */
  function takeOfPair() {
    if (![state.across, state.up].includes(state.hand)) take(state.across);
  }

  /** Moves the two latents of the plane by what a pointer or a key says. */
  function nudge(across, up) {
    const y = turned(state.lead, state.lead.z), clamp = (latent, value) => Math.min(Math.max(value, ends(latent)[0]), ends(latent)[1]);
    const size = (latent) => ends(latent)[1] - ends(latent)[0];
    stop();
    takeOfPair();
    const pairs = [[state.across, across], [state.up, up]].filter(([, share]) => share !== 0);
    move(pairs.map(([latent, share]) => [latent, clamp(latent, y[latent] + share * size(latent))]));
  }

  /** Lets a canvas move the two latents: a pointer drags, arrow keys step. */
  function draggable(canvas) {
    let last = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (!event.isPrimary || event.button !== 0) return; // one finger, or the main button
      if (event.pointerType === "touch" && getComputedStyle(canvas).touchAction !== "none") return; // it scrolls
      canvas.setPointerCapture(event.pointerId);
      last = [event.clientX, event.clientY];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last || !event.isPrimary) return;
      nudge((event.clientX - last[0]) / canvas.clientWidth, (last[1] - event.clientY) / canvas.clientHeight);
      last = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { last = null; });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      nudge(step[0] / STEPS, step[1] / STEPS);
    });
  }

  function picture(name) {
    const canvas = make("canvas", { className: "small" }), note = make("figcaption", { textContent: name });
    return [make("figure", { className: "small-figure" }, canvas, note), canvas, note];
  }

  function buildMember(member) {
    const image = make("canvas", { className: images ? "image" : "image plane", tabIndex: 0, role: "application",
      "aria-label": `What member ${member.letter} decodes. Drag, or use the arrow keys, to move latents.` });
    draggable(image);
    const lead = make("button", { type: "button", className: "lead-button", textContent: "Let it lead",
      title: `The sliders become those of ${member.letter}` });
    lead.addEventListener("click", () => {
      leadWith(member);
      image.focus({ preventScroll: true }); // the button goes
    });
    const note = make("p", { className: "member-note" });
    const name = make("h3", { title: member.name }, make("span", { className: "letter", textContent: member.letter }), ` ${member.short}`);
    const role = make("p", { className: "role" }, ...[member.role, ...member.scores].filter(Boolean).map((line) => make("span", { textContent: line })));
    const below = make("div", { className: "below" }, make("span", { className: "letter", textContent: member.letter }), note);
    const card = make("article", { className: "member" }, image, name, role, below, lead);
    const parts = { card, image, note, lead, facts: make("div", { className: "facts-of" }) };
    const pictures = [];
    if (images) {
      [parts.original, parts.originalImage] = picture("original");
      [parts.reconstruction, parts.reconstructionImage] = picture("reconstruction");
      const [figure, slopeImage, slopeNote] = picture("");
      Object.assign(parts, { slopeImage, slopeNote });
      pictures.push(parts.original, parts.reconstruction, figure);
    }
    parts.why = make("article", { className: "why" },
      make("h3", {}, make("span", { className: "letter", textContent: member.letter }), ` ${member.name} `, make("code", { textContent: member.address, title: "the beginning of its address" })),
      make("div", { className: "pictures" }, ...pictures), parts.facts);
    member.parts = parts;
    const shown = decoder.run(member.prepared, member.codes.subarray(UNSEEN * member.latents, (UNSEEN + 1) * member.latents)).value;
    const expected = floats(member.decoded);
    member.difference = shown.reduce((worst, value, i) => Math.max(worst, Math.abs(value - expected[i])), 0);
    if (!(member.difference <= 0.02 * (data.range[1] - data.range[0]))) {
      card.append(make("p", { className: "warning", textContent: "Its images differ from PyTorch’s: do not trust them." }));
    }
  }

  /** On narrow screens pictures stay in sight, and what is above them does not: how high that is. */
  function measureStage() {
    const top = (element) => element.getBoundingClientRect().top, stage = document.querySelector(".stage");
    stage.style.setProperty("--above", `${Math.max(top(members[0].parts.image) - top(stage) - 8, 0)}px`);
  }

  function leadWith(member) {
    stop();
    state.lead = member;
    const order = ordered(member);
    state.angle = 0;
    place("angle").value = 0;
    [state.hand, state.across, state.up] = [order[0], order[0], order[Math.min(1, order.length - 1)]];
    for (const other of members) other.parts.lead.hidden = other === member || members.length === 1;
    changed({ build: true });
  }

  function build() {
    buildStarts();
    members.forEach(buildMember);
    const original = make("article", { id: "original" }, make("canvas", { id: "original-image", role: "img", "aria-label": "The original" }),
      make("h3", { textContent: "original" }));
    place("members").replaceChildren(original, ...members.map((member) => member.parts.card));
    place("whys").replaceChildren(...members.map((member) => member.parts.why));
    draggable(place("codes"));
    place("passive-fold").addEventListener("toggle", drawHistograms); // which have no width before
    for (const name of ["across", "up"]) {
      place(name).addEventListener("change", () => {
        state.angle = 0;
        place("angle").value = 0;
        const other = name === "across" ? "up" : "across", chosen = Number(place(name).value);
        if (state[other] === chosen) state[other] = state[name];
        state[name] = chosen;
        changed({ build: true });
      });
    }
    place("angle").addEventListener("input", () => {
      state.angle = Number(place("angle").value) * Math.PI / 180;
      takeOfPair(); // one of those that turn is shown
      changed({ look: true });
      members.forEach(drawMeasures);
    });
    place("reset").addEventListener("click", () => {
      state.angle = 0;
      place("angle").value = 0;
      startFrom(state.start);
    });
    // What has the focus stays as it is: a window also changes its size when a keyboard slides in.
    window.addEventListener("resize", () => changed({ look: true }));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed({ look: true }));
    leadWith(members[0]);
    startFrom(0);
    draw(); // at once: the page is whole when it is first seen
  }

  // For the console, and for tests.
  const page = window.explorer = { state, members, measures, move, startFrom, measuring: true, milliseconds: 0 };
  if (members.length) build();
})();
