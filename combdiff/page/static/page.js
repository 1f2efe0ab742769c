// The page: reads the form, asks /answer for one part at a time, and shows it. Nothing is evaluated, and what comes back
// is put in as text, by KaTeX, or as a parsed SVG.

const at = (id) => document.getElementById(id);
const PARTS = { index: "derivative", matrix: "derivative", source: "source", explanation: "explanation", plan: "plan", check: "check" };
const HELP = {
  matrix: "x'*A*x, A*B, a .* b, inv(X), det(X), tr(X), norm2(x)^2, sum(x), log, exp, … First lines may declare: A symmetric (n, n), x (n)",
  index: "(A, x) -> sum_{i,j} x[i] A[i,j] x[j], delta(i,j), conj(z[i]), [i < j], … First lines may declare: A complex (n, n; A[i,j] = -A[j,i]), x (n)",
  calculus: "declare names with orders, then an expression: A *(ij,j->i) x is a product over j; sum(ij->i), transpose(ij->ji), delta(2), inv, det, sin, …",
};
const EMPTY = "Write an expression, or choose an example, and press Differentiate.";
const state = { asked: null, parts: {}, tab: "index", backend: "numpy", examples: {}, running: null };

function made(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// --- what is asked ---------------------------------------------------------------------------------------------

function language() {
  return document.querySelector("input[name=language]:checked").value;
}

function sizesOf(written) {
  const sizes = {};
  for (const part of written.split(",").map((each) => each.trim()).filter(Boolean)) {
    const found = /^([^\W\d]\w*)\s*=\s*(\d{1,12})$/u.exec(part);
    if (!found || Number(found[2]) < 1) throw new Error(`'${part}' is not a size such as n=100`);
    sizes[found[1]] = Number(found[2]);
  }
  return sizes;
}

function asked() {
  const wrt = [at("wrt0").value, at("wrt1").value];
  if (!wrt[1].trim()) wrt.pop();
  if (wrt.length === 1 && !wrt[0].trim()) wrt.pop();
  return { text: at("text").value, wrt, sizes: sizesOf(at("sizes").value) };
}

function toLink() {
  const fields = new URLSearchParams({ language: language(), text: at("text").value });
  for (const id of ["wrt0", "wrt1", "sizes"]) if (at(id).value) fields.set(id, at(id).value);
  if (state.tab !== "index") fields.set("tab", state.tab);
  history.replaceState(null, "", "#" + fields);
}

function fromLink() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("text")) return false;
  const radio = document.querySelector(`input[name=language][value="${CSS.escape(fields.get("language") || "")}"]`);
  if (radio) radio.checked = true;
  for (const id of ["text", "wrt0", "wrt1", "sizes"]) at(id).value = fields.get(id) || "";
  if (PARTS[fields.get("tab")]) state.tab = fields.get("tab");
  return true;
}

async function ask(part, question, signal) {
  const response = await fetch("/answer", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ part, ...question }), signal,
  });
  return response.json();
}

// --- asking ----------------------------------------------------------------------------------------------------

async function submit() {
  clearMistake();
  let question;
  try {
    question = asked();
  } catch (problem) {
    showMistake({ message: problem.message, field: "sizes" });
    return;
  }
  if (!question.text.trim()) {
    say(EMPTY);
    return;
  }
  state.asked = question;
  state.parts = {};
  toLink();
  await show(state.tab);
}

async function show(tab) {
  select(tab);
  if (!state.asked) return;
  state.running?.abort();
  const running = (state.running = new AbortController());
  const panel = at(`panel-${tab}`);
  try {
    for (const part of new Set(["derivative", PARTS[tab]])) {
      if (!state.parts[part]) {
        const started = performance.now();
        say(part === "derivative" ? "Differentiating …" : "Working …", true);
        const answer = await ask(part, state.asked, running.signal);
        if (answer.error) {
          if (part === "derivative") at("results").querySelectorAll("[role=tabpanel]").forEach((each) => each.replaceChildren());
          else panel.replaceChildren();
          showMistake(answer.error);
          say("There is no result.");
          return;
        }
        state.parts[part] = answer;
        say(`Done in ${((performance.now() - started) / 1000).toFixed(1)} s.`);
        if (part === "derivative") showTensors(answer);
      }
    }
    showNotes([...new Set(Object.values(state.parts).flatMap((each) => each.notes))]);
    panel.replaceChildren(...VIEWS[tab](state.parts[PARTS[tab]]));
    at("status").classList.remove("busy");
    if (at("status").getBoundingClientRect().top > window.innerHeight - 80) at("results").scrollIntoView();
  } catch (problem) {
    if (problem.name !== "AbortError") say("The server does not answer. Is combdiff serve still running?");
  }
}

function say(text, busy = false) {
  at("status").textContent = text;
  at("status").classList.toggle("busy", busy);
}

function showNotes(notes) {
  at("notes").hidden = !notes.length;
  at("notes").replaceChildren(...notes.map((note) => made("div", {}, note)));
}

// --- mistakes, at their place -------------------------------------------------------------------------------------

function clearMistake() {
  at("mistake").hidden = true;
  at("mistake").replaceChildren();
  at("marks").replaceChildren();
  for (const id of ["text", "wrt0", "wrt1", "sizes"]) at(id).removeAttribute("aria-invalid");
}

function showMistake(mistake) {
  const box = at("mistake"), field = at(mistake.field) || at("text");
  const placed = mistake.position !== undefined;
  const where = placed && mistake.field === "text" ? `Line ${mistake.line}, column ${mistake.column}: ` : "";
  box.replaceChildren(made("p", {}, made("span", { class: "place" }, where), mistake.message));
  if (mistake.excerpt) box.append(made("pre", {}, mistake.excerpt));
  if (mistake.hint) box.append(made("p", {}, mistake.hint));
  box.hidden = false;
  showCaret(box.querySelector("pre"));
  field.setAttribute("aria-invalid", "true");
  if (!placed) return;
  // positions count characters, strings count UTF-16 units
  const start = [...field.value].slice(0, mistake.position).join("").length;
  const word = /^(\w+|[^\n]?)/u.exec(field.value.slice(start))[0].length;
  field.focus({ preventScroll: true });
  field.setSelectionRange(start, start + word);
  if (field.id === "text") {
    const value = field.value;
    at("marks").replaceChildren(value.slice(0, start), made("mark", {}, value.slice(start, start + word) || " "), value.slice(start + word));
  }
}

function showCaret(excerpt) {
  if (!excerpt) return;
  const lines = excerpt.textContent.split("\n"), longest = Math.max(...lines.map((line) => line.length));
  excerpt.scrollLeft = excerpt.scrollWidth * (lines.at(-1).length / longest) - excerpt.clientWidth / 2;
}

// --- the tensors, which edit the declarations in the text --------------------------------------------------------

const KINDS = { "": "none", symmetric: "symmetric", antisymmetric: "antisymmetric", hermitian: "Hermitian" };

function showTensors(answer) {
  const calculus = language() === "calculus";
  const rows = answer.parameters.filter((each) => each.axes).map((each) => row(each, calculus));
  at("rows").replaceChildren(...rows);
  at("tensors").hidden = !rows.length;
}

function row(tensor, calculus) {
  const change = () => declare(calculus);
  const axes = made("input", { value: tensor.axes.join(", "), "aria-label": `Axes of ${tensor.name}`, onchange: change, spellcheck: "false", readonly: calculus });
  const kinds = Object.entries(KINDS).filter(([kind]) => (calculus ? kind === "" || kind === "symmetric" : kind === "" || tensor.axes.length === 2));
  if (!(tensor.kind in KINDS)) kinds.push([tensor.kind, tensor.kind]);
  const options = kinds.map(([kind, shown]) => made("option", { value: kind, selected: kind === tensor.kind }, shown));
  const kind = made("select", { "aria-label": `Symmetry of ${tensor.name}`, onchange: change }, ...options);
  const complex = made("input", { type: "checkbox", "aria-label": `${tensor.name} is complex`, onchange: change, checked: tensor.complex });
  const line = made("tr", {}, made("th", { scope: "row" }, made("code", {}, tensor.name)), ...[axes, kind, complex].map((each) => made("td", {}, each)));
  line.tensor = tensor;
  return line;
}

function declare(calculus) {
  const declared = [...at("rows").children].map((line) => {
    const [axes, kind, complex] = line.querySelectorAll("input:not([type]), select, input[type=checkbox]");
    const word = kind.value in KINDS ? kind.value : "";
    const words = [line.tensor.name, ...(complex.checked && word !== "hermitian" ? ["complex"] : []), ...(word ? [word] : [])];
    if (calculus) return [words[0], line.tensor.axes.length, ...words.slice(1).reverse()].join(" ");
    const equations = kind.value && !word ? `; ${kind.value}` : "";
    return `${words.join(" ")} (${axes.value}${equations})`;
  });
  const text = [...at("text").value], [start, end] = state.parts.derivative.declared;
  const line = declared.join(calculus ? " " : ", ") + (end || calculus ? "" : "\n");
  at("text").value = text.slice(0, start).join("") + line + text.slice(end).join("");
  submit();
}

// --- views ----------------------------------------------------------------------------------------------------

function formula(latex, display = true) {
  const node = made("div", { class: "formula", tabindex: display ? "0" : undefined });
  try {
    window.katex.render(latex, node, { displayMode: display, throwOnError: true, maxExpand: 1000, trust: false, strict: "ignore" });
  } catch {
    node.append(made("pre", { class: "code wrap" }, latex));
  }
  return node;
}

function copier(label, text) {
  const button = made("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text).then(() => say("Copied."), () => say("The browser does not allow copying."));
  });
  return button;
}

function forms(answer, text, latex) {
  return answer.forms.slice().reverse().map((form) => made("section", { class: "form" },
    made("div", { class: "formhead" }, made("h2", {}, form.title), copier("Copy text", form[text]), copier("Copy LaTeX", form[latex])),
    formula(form[latex]),
    made("details", {}, made("summary", {}, "As text"), made("pre", { class: "code wrap" }, form[text]))));
}

function source(answer) {
  const names = { numpy: "NumPy", jax: "JAX", torch: "PyTorch" };
  const code = made("pre", { class: "code", tabindex: "0" });
  const copy = made("button", { type: "button" }, "Copy");
  copy.addEventListener("click", () => navigator.clipboard.writeText(code.textContent).then(() => say("Copied.")));
  const buttons = Object.keys(answer.sources).map((backend) => made("button", { type: "button", onclick: () => choose(backend) }, names[backend]));
  const choose = (backend) => {
    state.backend = backend;
    code.textContent = answer.sources[backend];
    buttons.forEach((each) => each.setAttribute("aria-pressed", String(each.textContent === names[backend])));
  };
  choose(state.backend);
  return [made("div", { class: "subtabs", role: "group", "aria-label": "Array library" }, ...buttons, copy), code];
}

function explanation(answer) {
  const steps = answer.steps.map((step) => made("li", {},
    made("div", { class: "law" }, step.place ? `${step.law}, in ${step.place}` : step.law),
    formula(step.before), made("div", { class: "arrow", "aria-label": "becomes" }, "↓"), formula(step.after)));
  const head = (title) => made("h2", {}, title);
  return [head("As the rules of differentiation give it"), formula(answer.first),
    ...(steps.length ? [head("Simplified, law by law"), made("ol", { class: "steps" }, ...steps)] : []), head("Result"), formula(answer.last)];
}

function numbered(number) {
  return number.toLocaleString("en");
}

function plan(answer) {
  const open = answer.open.length > 0;
  const head = ["Step", "Operation", "Equation", "Shape", "Flops", "Bytes", "Share"];
  const rows = answer.rows.map((step) => {
    const cells = [step.name, step.operation, step.equation, step.shape.join(" × ") || "1",
      open ? step.flops_formula : numbered(step.flops), open ? step.bytes_formula : numbered(step.bytes)];
    const share = `${(100 * step.share).toFixed(1)} %`;
    return made("tr", {}, ...cells.map((cell, n) => made("td", { class: n > 3 ? "number" : undefined }, cell)), made("td", { class: "number" }, share));
  });
  const table = made("table", {}, made("thead", {}, made("tr", {}, ...head.map((each, n) => made("th", { scope: "col", class: n > 3 ? "number" : undefined }, each)))), made("tbody", {}, ...rows));
  const sizes = Object.entries(answer.sizes).map(([name, size]) => `${name} = ${numbered(size)}`).join(", ");
  const total = open ? `In all ${answer.flops_formula} flops, at most ${answer.peak_formula} bytes at one time; planned for ${sizes}.`
    : `In all ${numbered(answer.flops)} flops, at most ${numbered(answer.peak)} bytes at one time${sizes ? `, at ${sizes}` : ""}.`;
  const pictures = Object.entries(answer.pictures || {}).map(([caption, svg]) => made("figure", { tabindex: "0" }, made("figcaption", {}, caption), drawn(svg)));
  return [made("p", {}, total), made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Steps of the plan" }, table), ...pictures];
}

function drawn(svg) {
  return document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
}

function check(answer) {
  if (answer.passed === null) return [made("p", {}, "There is no derivative to check: nothing is differentiated by.")];
  const verdict = made("p", { class: answer.passed ? "passed" : "failed" }, answer.passed ? "The derivative agrees with central differences." : "The derivative does not agree with central differences, or is not finite.");
  const error = answer.largest === null ? "not a number" : answer.largest ? answer.largest.toExponential(1) : "0";
  return [verdict, made("p", {}, `Largest error of any entry at random values, in every real and imaginary direction: ${error} (1e-6 passes).`)];
}

const VIEWS = {
  index: (answer) => forms(answer, "text", "latex"),
  matrix: (answer) => forms(answer, "matrix", "matrix_latex"),
  source, explanation, plan, check,
};

// --- tabs, examples, keys -----------------------------------------------------------------------------------------

function select(tab) {
  state.tab = tab;
  for (const each of Object.keys(PARTS)) {
    at(`tab-${each}`).setAttribute("aria-selected", String(each === tab));
    at(`tab-${each}`).tabIndex = each === tab ? 0 : -1;
    at(`panel-${each}`).hidden = each !== tab;
  }
}

function moveTab(event) {
  const tabs = Object.keys(PARTS), now = tabs.indexOf(state.tab);
  const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  at(`tab-${tab}`).focus();
  open(tab);
}

function open(tab) {
  if (state.asked) {
    state.tab = tab;
    toLink();
  }
  return show(tab);
}

function showExamples() {
  at("help").textContent = HELP[language()];
  const buttons = (state.examples[language()] || []).map((example) => made("button", { type: "button", onclick: () => {
    at("text").value = example.text;
    at("wrt0").value = example.wrt[0] || "";
    at("wrt1").value = example.wrt[1] || "";
    submit();
  } }, example.title));
  at("examples").replaceChildren(...buttons);
}

function start() {
  for (const tab of Object.keys(PARTS)) at(`tab-${tab}`).addEventListener("click", () => open(tab));
  at("tabs").addEventListener("keydown", moveTab);
  at("question").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  at("question").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); submit(); } });
  at("text").addEventListener("input", () => at("marks").replaceChildren());
  document.querySelectorAll("input[name=language]").forEach((each) => each.addEventListener("change", showExamples));
  at("link").addEventListener("click", async () => {
    toLink();
    await navigator.clipboard.writeText(location.href).then(() => say("The link is copied; it holds the whole input."), () => say("The link is in the address bar."));
  });
  window.addEventListener("hashchange", () => { if (fromLink()) { showExamples(); submit(); } });
}

start();
const linked = fromLink();
select(state.tab);
say(EMPTY);
state.examples = await (await fetch("/static/examples.json")).json();
showExamples();
if (linked) await submit();
