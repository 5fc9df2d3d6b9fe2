// The editor of the playground and of a replay's body. Loaded when one is opened. It lives in a shadow root, where
// its styles are constructed sheets: the page's policy allows no inline ones.
import { history, historyKeymap, indentWithTab, standardKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { HighlightStyle, bracketMatching, codeFolding, foldGutter, foldKeymap, ensureSyntaxTree, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import { Annotation, Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export interface Problem {
  message: string;
  offset?: number | null;
  line?: number;
  column?: number;
}

/** Something to be reported at a place of the document. */
export interface Mark {
  /** A JSON pointer, or `#` and the number of a line. */
  pointer: string;
  severity: "error" | "warning" | "info";
  message: string;
}

export interface Editor {
  /** Brings a place into sight, and the cursor to it. */
  show(pointer: string): void;
  setMarks(marks: readonly Mark[]): void;
  text(): string;
  setText(text: string): void;
  setProblem(problem: Problem | null): void;
  setJson(on: boolean): void;
  focus(): void;
  destroy(): void;
}

const fromOutside = Annotation.define<boolean>();

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "12.5px", color: "var(--ink)", backgroundColor: "var(--sheet)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { padding: "10px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 12px 0 4px" },
  ".cm-gutters": { backgroundColor: "var(--sheet)", color: "var(--faint)", border: "none" },
  ".cm-foldGutter .cm-gutterElement": { padding: "0 2px 0 6px", cursor: "pointer" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  "&.cm-focused": { outline: "none" },
  "&.cm-focused .cm-cursor": { borderLeftColor: "var(--accent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--accent-soft)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--hover)", border: "1px solid var(--line)", color: "var(--soft)", padding: "0 6px" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--serious)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--degraded)" },
  ".cm-lintRange-info": { backgroundImage: "none", textDecoration: "underline dotted var(--harmless)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--degraded)" },
  ".cm-diagnostic-info": { borderLeft: "3px solid var(--harmless)" },
  ".cm-diagnosticText": { whiteSpace: "pre-line" },
  ".cm-tooltip": { backgroundColor: "var(--sheet)", color: "var(--ink)", border: "1px solid var(--line)" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--serious)" },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--json-key)" },
  { tag: tags.string, color: "var(--json-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--json-number)" },
]);

/** Where a JSON pointer leads in the text: to its name, or to the nearest place above it that is there. `#12` is a line. */
function placeOf(state: EditorState, pointer: string): { from: number; to: number } | null {
  if (pointer.startsWith("#")) {
    const number = Number(pointer.slice(1));
    const line = number >= 1 && number <= state.doc.lines ? state.doc.line(number) : null;
    return line && { from: line.from, to: Math.min(line.to, line.from + "data:".length) };
  }
  const tree = ensureSyntaxTree(state, state.doc.length, 100);
  let node = tree?.topNode.firstChild ?? null;
  let found = node;
  for (const token of pointer.split("/").slice(1)) {
    if (!node) break;
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    let next = null;
    let at = 0;
    for (let child = node.firstChild; child; child = child.nextSibling) {
      if (node.name === "Object" && child.name === "Property") {
        const key = child.getChild("PropertyName");
        if (key && state.sliceDoc(key.from, key.to) === JSON.stringify(name)) {
          found = key;
          next = child.lastChild;
          break;
        }
      } else if (node.name === "Array" && !/^[[\],⚠]$/.test(child.name) && at++ === Number(name)) {
        found = child;
        next = child;
        break;
      }
    }
    if (!next) break;
    node = next;
  }
  // Of a whole object its brace is enough: all of it underlined would be hard to read.
  return found ? { from: found.from, to: found.name === "Object" || found.name === "Array" ? found.from + 1 : found.to } : null;
}

export function createEditor(host: HTMLElement, label: string, isJson: boolean, text: string, changed: ((text: string, pasted: boolean) => void) | null): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.replaceChildren();
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(":host{display:block;min-height:0}.box{height:100%}");
  root.adoptedStyleSheets = [sheet];
  const box = document.createElement("div");
  box.className = "box";
  root.append(box);
  const language = new Compartment();
  const view = new EditorView({
    root,
    parent: box,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        highlightActiveLine(),
        bracketMatching(),
        codeFolding(),
        foldGutter(),
        EditorView.lineWrapping,
        EditorState.readOnly.of(changed === null),
        indentUnit.of("  "),
        EditorState.tabSize.of(2),
        keymap.of([...standardKeymap, ...historyKeymap, ...foldKeymap, indentWithTab]),
        language.of(isJson ? json() : []),
        syntaxHighlighting(colours),
        theme,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged || update.transactions.some((each) => each.annotation(fromOutside))) return;
          const pasted = update.transactions.some((each) => each.isUserEvent("input.paste") || each.isUserEvent("input.drop"));
          changed?.(update.state.doc.toString(), pasted);
        }),
      ],
    }),
  });
  let problems: Diagnostic[] = [];
  let marks: readonly Mark[] = [];
  const tell = () => {
    const placed = marks.flatMap((mark): Diagnostic[] => {
      const place = placeOf(view.state, mark.pointer);
      return place ? [{ ...place, severity: mark.severity, message: mark.message }] : [];
    });
    view.dispatch(setDiagnostics(view.state, [...problems, ...placed]));
  };
  return {
    show(pointer) {
      const place = placeOf(view.state, pointer);
      if (!place) return;
      view.dispatch({ selection: { anchor: place.from, head: place.to }, effects: EditorView.scrollIntoView(place.from, { y: "center" }) });
      view.focus();
    },
    setMarks(next) {
      if (!next.length && !marks.length) return;
      marks = next;
      tell();
    },
    text: () => view.state.doc.toString(),
    setText(next) {
      if (next === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next }, annotations: fromOutside.of(true) });
    },
    setProblem(problem) {
      const found: Diagnostic[] = [];
      if (problem) {
        let from = problem.offset ?? -1;
        if (from < 0 && problem.line) {
          const line = view.state.doc.line(Math.max(1, Math.min(problem.line, view.state.doc.lines)));
          from = Math.min(line.to, line.from + Math.max(0, (problem.column ?? 1) - 1));
        }
        if (from >= 0) {
          from = Math.min(from, view.state.doc.length);
          found.push({ from: Math.max(0, Math.min(from, view.state.doc.length - 1)), to: Math.min(view.state.doc.length, from + 1), severity: "error", message: problem.message });
        }
      }
      problems = found;
      tell();
    },
    setJson(on) {
      view.dispatch({ effects: language.reconfigure(on ? json() : []) });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
