/*
 * <telic-search>: a search box for any page, an editable combobox with a list (WAI-ARIA 1.2).
 *
 *   <script src="https://search.example/static/telic-search.js" defer></script>
 *   <form action="/search"><telic-search name="q" label="Search"></telic-search></form>
 *
 * Attributes
 *   src       the service; where this file came from by default
 *   name      of the form's field: "q" by default
 *   label     what the box is called: "Search" by default
 *   placeholder
 *   results   where a search leads, {q} being the query: "/search?q={q}". Without it a form around the
 *             box is submitted; without a form only the event is sent.
 *   token     what proves the user, signed by your server; a visitor's of the service's by default
 *   consent   says that who types agreed to be recorded, where the service records
 *   no-submit does not tell the service what was searched for: it stores nothing, and learns nothing
 *   where     contexts to suggest within, as JSON: '{"category": "travel"}'
 *   boost     values of contexts that count as more popular, or less: '{"category": {"travel": 3}}'
 *   pad       bytes to which each request's body is filled up, or to twice, four times … as many
 * Properties: value, token, client, where and boost (objects), template (suggestion → a Node or text to show).
 * Events: "telic-search" with detail {query, suggestion}; preventDefault() keeps the page from leaving.
 *   "telic-error" with detail {message}: an attribute that cannot be read, or what the service refuses.
 */
(() => {
  "use strict";
  if (customElements.get("telic-search")) return;
  const HOME = new URL("..", document.currentScript?.src || document.baseURI).href; // a module or a bundle has no script of its own
  const RETRY_MS = [500, 1000, 2000, 4000, 8000];
  const TIMEOUT_MS = 8000;
  const LEAVE_MS = 300;
  const DAY = 24 * 3600;

  function randomId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /** Return what JSON says; what is none stays text, and is complained of. */
  function parsed(text) {
    try {
      return text ? JSON.parse(text) ?? undefined : undefined;
    } catch {
      return text;
    }
  }

  /** Return what is searched for: half a character, as typed, goes into no address. */
  const searchable = (text) => text.trim().replace(/\p{Surrogate}/gu, "\ufffd");

  const isObject = (value) => typeof value === "object" && !Array.isArray(value);

  /** Asks a service, as one user. */
  class TelicClient {
    constructor(service = HOME, token = "") {
      this.service = new URL(service.endsWith("/") ? service : `${service}/`, document.baseURI).href;
      this.token = token;
      this.visitor = null;
      this.pad = 0;
    }

    /** Return JSON filled up with white space, so that its size tells little of what is typed. */
    padded(body) {
      const text = JSON.stringify(body);
      const bytes = new TextEncoder().encode(text).length;
      let size = this.pad;
      while (size > 0 && size < bytes) size *= 2;
      return text + " ".repeat(Math.max(0, size - bytes));
    }

    async credentials() {
      if (this.token) return { token: this.token };
      this.visitor ??= this.visit();
      try {
        return await this.visitor;
      } catch (error) {
        this.visitor = null;
        throw error;
      }
    }

    async visit(renew = false) {
      const place = `telic-visitor ${this.service}`;
      let kept = null;
      try {
        kept = JSON.parse(localStorage.getItem(place));
      } catch {
        // Storage is blocked, or holds what is none of ours: somebody new.
      }
      if (!renew && kept?.user && kept.expires > Date.now() / 1000 + DAY) return kept;
      kept = await this.post("visitor", {}, {});
      try {
        localStorage.setItem(place, JSON.stringify(kept));
      } catch {
        // Somebody new at each visit.
      }
      return kept;
    }

    async post(path, body, { token = "", signal, keepalive = false }) {
      const timeout = AbortSignal.timeout(TIMEOUT_MS);
      const response = await fetch(this.service + path, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) },
        body: this.padded(body),
        credentials: "omit",
        keepalive,
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      if (response.ok) return response.json();
      const said = (await response.json().catch(() => null))?.error;
      const error = new Error(said ? `${said.message} ${said.hint}` : `The service answered ${response.status}.`);
      error.status = response.status;
      throw error;
    }

    async ask(path, body, options = {}) {
      const who = await this.credentials();
      const named = who.token ? body : { user: who.user, ...body };
      try {
        return await this.post(path, named, { ...options, token: who.token });
      } catch (error) {
        if (error.status !== 401 || this.token) throw error;
        this.visitor = this.visit(true); // the visitor's token is no longer good
        return this.post(path, body, { ...options, token: (await this.visitor).token });
      }
    }

    /** Return suggestions [{text, url, id, payload}] for what stands in the box. */
    async suggest(q, { composition, t, consent, where, boost, signal } = {}) {
      const body = { ...where, q, composition, t, consent, boost };
      const [, texts, , urls, more] = await this.ask("suggest", body, { signal });
      return texts.map((text, i) => ({ url: urls[i], ...more?.suggestions?.[i], text }));
    }

    /** Tell what was searched for in the end: once, however often it is sent. */
    submit(query, composition) {
      return this.ask("submit", { query, composition }, { keepalive: true });
    }
  }

  const SHEET = new CSSStyleSheet();
  SHEET.replaceSync(`
    :host { --telic-ink: #1b1f23; --telic-quiet: #5c636b; --telic-ground: #fff; --telic-line: #8b9199;
      --telic-chosen: #dcebe8; --telic-accent: #0f6b63;
      display: inline-block; position: relative; inline-size: 20rem; max-inline-size: 100%;
      font: inherit; color: var(--telic-ink); text-align: start; }
    @media (prefers-color-scheme: dark) {
      :host { --telic-ink: #e8e8e4; --telic-quiet: #a9b1b8; --telic-ground: #1a1e21; --telic-line: #707880;
        --telic-chosen: #24403c; --telic-accent: #63cbbb; } }
    :host([hidden]), [hidden] { display: none !important; }
    * { box-sizing: border-box; }
    input { inline-size: 100%; min-block-size: 2.75rem; padding: .4rem .75rem; font: inherit; font-size: max(1rem, 16px);
      color: inherit; background: var(--telic-ground); border: 1px solid var(--telic-line); border-radius: .5rem; }
    input:focus-visible { outline: 2px solid var(--telic-accent); outline-offset: 1px; }
    ul { position: absolute; inset-inline: 0; z-index: 1000; margin: .25rem 0 0; padding: .25rem; list-style: none;
      max-block-size: min(24rem, 60vh); overflow-y: auto; background: var(--telic-ground);
      border: 1px solid var(--telic-line); border-radius: .5rem; box-shadow: 0 6px 20px #0003; }
    li { padding: .5rem .6rem; min-block-size: 2.75rem; display: flex; align-items: center; border-radius: .35rem;
      cursor: pointer; overflow-wrap: anywhere; }
    li[aria-selected=true], li:hover { background: var(--telic-chosen); }
    li[aria-selected=true] { outline: 1px solid var(--telic-accent); outline-offset: -1px; }
    ul[data-old] li { color: var(--telic-quiet); opacity: .6; }
    p { margin: .25rem 0 0; padding: .1rem .4rem; border-radius: .35rem; font-size: .85em; color: var(--telic-quiet);
      background: var(--telic-ground); } /* whatever the page's own ground is */
    p:empty { margin: 0; padding: 0; }
    .heard { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }`);

  let boxes = 0;

  /** Return an element, made without markup: a page may trust none (Trusted Types). */
  function element(tag, attributes) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  class TelicSearch extends HTMLElement {
    static formAssociated = true;
    static observedAttributes = ["label", "placeholder", "token", "src", "pad", "where", "boost"];

    constructor() {
      super();
      this.internals = this.attachInternals();
      this.template ??= null; // pages may have set it before this file came
      this.limits = { where: undefined, boost: undefined };
      this.suggestions = [];
      this.typed = ""; // what the list that stands answers; null: its limits or its user have changed
      this.active = -1;
      this.composition = null; // of the query being typed; a new one after each search
      this.asked = null;
      this.composing = false;
      this.composedAt = -Infinity;
      this.boxId = `telic-${++boxes}`;
      const root = this.attachShadow({ mode: "open", delegatesFocus: true });
      root.adoptedStyleSheets = [SHEET]; // which a page's policy against inline styles allows
      this.input = element("input", {
        type: "text", role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "list",
        autocomplete: "off", autocapitalize: "off", autocorrect: "off", spellcheck: "false", enterkeyhint: "search",
        maxlength: "256", dir: "auto",
      });
      this.lost = element("p", { id: "lost", role: "status" });
      this.list = element("ul", { id: "list", role: "listbox", hidden: "" });
      this.heard = element("div", { class: "heard", role: "status" });
      root.append(this.input, this.lost, this.list, this.heard);
      this.again = () => { if (this.composition && this.isOld()) this.ask(); };
      this.sent = (event) => { // by a button of the form, and not by a script
        if (!event.submitter || !this.composition) return;
        this.tell(this.value);
        this.show([], this.value); // a page that stays shows no list that waits for its answer
      };
      this.listen();
    }

    connectedCallback() {
      for (const early of ["value", "token", "where", "boost"]) {
        if (!Object.hasOwn(this, early)) continue;
        const given = this[early];
        delete this[early];
        this[early] = given;
      }
      this.client ??= this.made();
      if (!this.hasAttribute("name")) this.setAttribute("name", "q");
      this.name();
      window.addEventListener("online", this.again);
      this.again(); // if it was moved while an answer was under way
    }

    disconnectedCallback() {
      this.cancel();
      window.removeEventListener("online", this.again);
    }

    formAssociatedCallback(form) {
      this.form?.removeEventListener("submit", this.sent);
      this.form = form;
      form?.addEventListener("submit", this.sent);
    }

    formResetCallback() {
      this.clear();
    }

    formDisabledCallback(disabled) {
      this.input.disabled = disabled;
    }

    attributeChangedCallback(attribute, _, value) {
      if (attribute === "where" || attribute === "boost") this[attribute] = parsed(value);
      else if (["token", "src", "pad"].includes(attribute)) {
        if (this.client && attribute === "src") this.client = this.made();
        if (this.client && attribute === "token") this.client.token = value ?? "";
        if (this.client && attribute === "pad") this.client.pad = this.pad;
        this.limit({});
      } else this.name();
    }

    /** What the page says that cannot be used: without it the box would show or tell more than it may, so it asks nothing. */
    get wrong() {
      const name = ["where", "boost"].find((each) => !isObject(this.limits[each] ?? {}));
      if (name) return `'${name}' is no JSON object.`;
      return /^\d*$/.test(this.getAttribute("pad") ?? "") ? "" : "'pad' is no number of bytes.";
    }

    made() {
      const client = new TelicClient(this.getAttribute("src") ?? HOME, this.token);
      client.pad = this.pad;
      return client;
    }

    name() {
      const label = this.getAttribute("label") ?? "Search";
      this.input.setAttribute("aria-label", label);
      this.list.setAttribute("aria-label", `${label}: suggestions`);
      this.input.placeholder = this.getAttribute("placeholder") ?? "";
    }

    get value() { return this.input.value; }
    set value(text) {
      const before = this.value;
      this.input.value = text;
      this.internals.setFormValue(this.value);
      if (this.value === before) return; // as of pages that put back what was typed
      this.cancel();
      if (this.composition) this.ask();
      else this.show([], this.value);
    }
    get where() { return this.limits.where; }
    set where(contexts) { this.limit({ where: contexts }); }
    get boost() { return this.limits.boost; }
    set boost(factors) { this.limit({ boost: factors }); }
    get pad() { return Math.max(0, parseInt(this.getAttribute("pad"), 10) || 0); }
    get token() { return this.client?.token ?? this.getAttribute("token") ?? ""; }
    set token(token) { if (token) this.setAttribute("token", token); else this.removeAttribute("token"); }

    listen() {
      const { input, list } = this;
      // Between compositionstart and compositionend the text is not yet what the user means, except
      // where keyboards compose every Latin word (Android): there each input counts at once.
      input.addEventListener("compositionstart", () => { this.composing = true; });
      input.addEventListener("compositionend", (event) => {
        this.composing = false;
        this.composedAt = event.timeStamp;
        this.typedNow();
      });
      input.addEventListener("input", (event) => {
        if (!event.isComposing || /^[\p{Script=Latin}\p{N}\p{P}\p{Zs}\p{M}]*$/u.test(input.value)) this.typedNow();
      });
      input.addEventListener("keydown", (event) => this.key(event));
      input.addEventListener("click", () => this.expand(true));
      input.addEventListener("blur", () => this.expand(false));
      for (const kind of ["pointerdown", "mousedown"]) list.addEventListener(kind, (event) => event.preventDefault());
      list.addEventListener("click", (event) => {
        const option = event.target.closest("[role=option]");
        if (option) this.search(this.suggestions[[...list.children].indexOf(option)]);
      });
    }

    typedNow() {
      this.internals.setFormValue(this.value);
      // compositionend comes after the input that it repeats, or after the search that ended it.
      const last = this.asked ? this.asked.q : this.composition ? null : this.typed;
      if (last === this.value) return;
      this.ask();
    }

    key(event) {
      // The Enter that ends a composition may come before its end (isComposing, 229), or just after (Safari):
      // by when they happened, since a busy page may hear of the second late.
      const ends = event.key === "Enter" && event.timeStamp - this.composedAt < 50;
      if (event.isComposing || this.composing || event.keyCode === 229 || ends) return;
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      const count = this.isOld() ? 0 : this.suggestions.length;
      const open = !this.list.hidden;
      const move = (i) => { if (count) { this.expand(true); this.activate(i); } };
      const keys = {
        ArrowDown: () => (event.altKey ? this.expand(true) : move(open ? (this.active + 1) % count : 0)),
        ArrowUp: () => {
          if (event.altKey) this.expand(false);
          else move(open && this.active > 0 ? this.active - 1 : count - 1);
        },
        Escape: (open || this.value) && (() => { if (open) this.expand(false); else this.clear(); }),
        Enter: () => this.search(this.active >= 0 ? this.suggestions[this.active] : { text: this.value }),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    }

    /** Ask within other limits, or as another user: those of a composition hold until its end, so another begins. */
    limit(given) {
      Object.assign(this.limits, given);
      const typing = this.composition !== null;
      this.composition = null;
      if (typing) this.typed = null;
      if (this.wrong) this.report(this.wrong);
      if (typing && this.isConnected) this.ask();
      else this.show([], this.value);
    }

    isOld() {
      return this.typed !== this.value;
    }

    cancel() {
      this.asked?.abort.abort();
      clearTimeout(this.asked?.timer);
      this.asked = null;
    }

    async ask(tries = 0, t = performance.now()) {
      this.cancel();
      const asked = this.asked = { q: this.value, abort: new AbortController() };
      this.composition ??= randomId();
      if (this.wrong) return this.show([], this.value);
      this.markOld();
      try {
        const { signal } = asked.abort;
        const consent = this.hasAttribute("consent") || undefined;
        const options = { ...this.limits, composition: this.composition, t, consent, signal };
        const found = await this.client.suggest(asked.q, options);
        if (asked !== this.asked) return;
        this.show(found, asked.q);
        // A moment later: a screen reader is not interrupted at every key.
        this.announcing = setTimeout(() => { this.heard.textContent = `${found.length} suggestions`; }, 600);
      } catch (error) {
        if (asked !== this.asked) return;
        this.say("No new suggestions at the moment.");
        const refused = error.status >= 400 && error.status < 500 && error.status !== 429;
        if (refused) this.report(error.message);
        if (refused || tries >= RETRY_MS.length) return;
        asked.timer = setTimeout(() => this.ask(tries + 1, t), RETRY_MS[tries]);
      }
    }

    /** An answer to other text than stands now is greyed, and nothing of it can be picked. */
    markOld() {
      const old = this.isOld();
      this.list.toggleAttribute("data-old", old);
      this.list.setAttribute("aria-busy", String(old));
      for (const option of this.list.children) option.setAttribute("aria-disabled", String(old));
      if (old) this.activate(-1);
    }

    /** Return what the page shows of a suggestion: its text, if the page's own code fails. */
    drawn(suggestion, q) {
      try {
        return this.template?.(suggestion, q) ?? suggestion.text;
      } catch (error) {
        this.report(`'template' failed: ${error.message}`);
        return suggestion.text;
      }
    }

    show(found, q) {
      this.suggestions = found;
      this.typed = q;
      this.list.replaceChildren(...found.map((suggestion, i) => {
        const option = document.createElement("li");
        option.id = `option-${i}`;
        option.role = "option";
        option.dir = "auto";
        option.setAttribute("aria-selected", "false");
        option.append(this.drawn(suggestion, q));
        return option;
      }));
      this.markOld();
      this.say("");
      this.activate(-1);
      this.expand(this.matches(":focus-within") || document.activeElement === this);
      clearTimeout(this.announcing);
    }

    say(text) {
      const said = this.wrong ? `No suggestions: ${this.wrong}` : text;
      this.lost.textContent = said;
    }

    /** Tell the page's author. */
    report(message) {
      console.error(`<telic-search>: ${message}`);
      this.dispatchEvent(new CustomEvent("telic-error", { detail: { message }, bubbles: true, composed: true }));
    }

    expand(open) {
      const shown = open && this.suggestions.length > 0;
      this.list.hidden = !shown;
      this.input.setAttribute("aria-expanded", String(shown));
      if (!shown) this.activate(-1);
    }

    activate(i) {
      this.list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
      this.active = i;
      if (i < 0) return this.input.removeAttribute("aria-activedescendant");
      const option = this.list.children[i];
      option.setAttribute("aria-selected", "true");
      option.scrollIntoView({ block: "nearest" });
      this.input.setAttribute("aria-activedescendant", option.id);
    }

    clear() {
      this.cancel();
      this.composition = null;
      this.value = "";
      this.show([], "");
    }

    /** Tell the service what was searched for, where the page lets it. */
    async tell(text) {
      const query = searchable(text);
      const composition = this.composition ?? randomId();
      this.cancel();
      this.composition = null;
      if (query && !this.wrong && !this.hasAttribute("no-submit")) await this.client.submit(query, composition).catch(() => {});
    }

    /** Search for a suggestion, or for {text}. */
    async search(suggestion) {
      const query = searchable(suggestion.text);
      if (!query || (this.isOld() && this.suggestions.includes(suggestion))) return;
      const told = this.tell(query);
      this.value = suggestion.text;
      this.show([], this.value);
      const detail = { query, suggestion };
      const stays = !this.dispatchEvent(
        new CustomEvent("telic-search", { detail, bubbles: true, composed: true, cancelable: true }),
      );
      const results = this.getAttribute("results");
      if (stays) return;
      // A page that is left may take its requests with it; but no search waits for long.
      await Promise.race([told, new Promise((done) => setTimeout(done, LEAVE_MS))]);
      if (results) location.assign(results.replaceAll("{q}", encodeURIComponent(query)));
      else this.internals.form?.requestSubmit();
    }
  }

  customElements.define("telic-search", TelicSearch);
  window.TelicClient = TelicClient;
})();
