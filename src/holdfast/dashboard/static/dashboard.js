// Adds to pages that work without it: live parts, charts, times in the viewer's zone, copying, bulk selection.
"use strict";

(() => {
  document.documentElement.classList.add("scripted");

  // --- times --------------------------------------------------------------------------------------
  const shown = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const localTimes = (within) => {
    for (const each of within.querySelectorAll("time[data-time]")) {
      const moment = new Date(each.dataset.time * 1000);
      if (!isNaN(moment)) each.textContent = shown.format(moment);
    }
  };

  // --- charts -------------------------------------------------------------------------------------
  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const short = (value) => value === null ? "–" : Math.abs(value) >= 10000 ? (value / 1000).toLocaleString(undefined, { maximumFractionDigits: 1 }) + " k" : value.toLocaleString(undefined, { maximumFractionDigits: 3 });
  const hours = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const days = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
  const draw = (figure) => {
    const given = JSON.parse(figure.dataset.chart);
    const unit = given.unit ? " " + given.unit : "";
    const axis = { stroke: tone("dim"), grid: { stroke: tone("line"), width: 1 }, ticks: { stroke: tone("line"), width: 1 } };
    const place = document.createElement("div");
    figure.querySelector("svg, .plot")?.replaceWith(place);
    place.className = "plot";
    const size = () => ({ width: Math.max(200, figure.clientWidth), height: 220 });
    const plot = new uPlot({
      ...size(),
      padding: [10, 34, 0, 0], // room for half a label after the last tick
      cursor: { y: false },
      legend: { live: true },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
      axes: [{ ...axis, size: 34, space: 80, values: (_, ticks) => ticks.map((at) => ((ticks.at(-1) - ticks[0]) > 172800 ? days : hours).format(new Date(at * 1000))) }, { ...axis, size: 58, values: (_, ticks) => ticks.map(short) }],
      series: [
        { label: "time", value: (_, at) => at === null ? "–" : shown.format(new Date(at * 1000)) },
        ...given.lines.map((line, number) => ({
          label: line.label,
          stroke: tone(line.tone),
          fill: number === 0 && given.lines.length < 3 ? tone(line.tone + "-soft") : undefined,
          width: 2,
          points: { show: given.times.length < 2 },
          value: (_, value) => value === null ? "–" : short(value) + unit,
        })),
      ],
    }, [given.times, ...given.lines.map((line) => line.values)], place);
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", figure.querySelector("figcaption")?.textContent ?? "chart");
    new ResizeObserver(() => plot.setSize(size())).observe(figure);
  };
  const charts = (within) => {
    const found = within.matches?.("figure[data-chart]") ? [within] : within.querySelectorAll("figure[data-chart]");
    if (window.uPlot) for (const each of found) draw(each);
  };

  // --- live parts ---------------------------------------------------------------------------------
  const live = document.getElementById("live");
  const state = document.getElementById("live-state");
  let stream = null;
  const showState = (word) => {
    state.hidden = false;
    state.classList.toggle("off", word !== "live");
    state.lastElementChild.textContent = word;
  };
  const listen = () => {
    if (stream || document.hidden) return;
    stream = new EventSource(live.dataset.live);
    stream.addEventListener("open", () => showState("live"));
    stream.addEventListener("changed", () => htmx.trigger(live, "changed"));
    stream.addEventListener("error", () => showState(stream.readyState === EventSource.CLOSED ? "not live" : "waiting"));
  };
  if (live && window.htmx) {
    listen();
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) { listen(); htmx.trigger(live, "changed"); return; }
      stream?.close();
      stream = null;
      showState("paused");
    });
    addEventListener("pagehide", () => stream?.close());
  }
  // A part that the user is using is not replaced.
  const inUse = (part) => part.contains(document.activeElement) && document.activeElement !== document.body
    || part.querySelector("input[type=checkbox]:checked, details[open]");
  document.addEventListener("htmx:oobBeforeSwap", (event) => { if (inUse(event.detail.target)) event.preventDefault(); });
  document.addEventListener("htmx:oobAfterSwap", (event) => enrich(event.detail.target));
  // On a phone the menu scrolls: it shows the present entry, and stays where it is when it is replaced.
  const menu = () => document.getElementById("menu");
  menu()?.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  let scrolled = 0;
  document.addEventListener("htmx:beforeSwap", () => { scrolled = menu()?.scrollLeft ?? 0; });
  document.addEventListener("htmx:afterSettle", () => { if (menu()) menu().scrollLeft = scrolled; });

  // --- copying, choosing, menus -------------------------------------------------------------------
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-text]");
    if (!button) return;
    const text = button.dataset.copyText ?? document.getElementById(button.dataset.copy).textContent;
    await navigator.clipboard.writeText(text);
    const before = [...button.childNodes];
    button.replaceChildren("✓");
    setTimeout(() => button.replaceChildren(...before), 1200);
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
    if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      document.querySelector(".find input")?.focus();
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
    if (event.target.matches("[data-all]")) for (const each of event.target.form.querySelectorAll("tbody input[type=checkbox]")) each.checked = event.target.checked;
  });

  // A running check or backup publishes no notice: the page reloads its live parts until it ends.
  setInterval(() => { if (live && window.htmx && !document.hidden && document.querySelector("[data-running]")) htmx.trigger(live, "changed"); }, 1000);

  const enrich = (within) => { localTimes(within); charts(within); };
  enrich(document);
})();
