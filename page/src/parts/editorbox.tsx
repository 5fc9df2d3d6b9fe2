// An editor where it is wanted, fetched when it is.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Editor, Mark, Problem } from "../lazy/editor";

interface Props {
  label: string;
  text: string;
  json: boolean;
  problem?: Problem | null;
  marks?: readonly Mark[];
  /** A place to bring into sight; another object each time. */
  show?: { pointer: string } | null;
  /** null: it can only be read. */
  changed: ((text: string, pasted: boolean) => void) | null;
}

const NONE: readonly Mark[] = [];

export function EditorBox({ label, text, json, problem = null, marks = NONE, show = null, changed }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const last = useRef({ text, changed, json, problem, marks });
  last.current = { text, changed, json, problem, marks };
  /** What was typed here last, until another text comes from outside. */
  const typed = useRef<string | null>(null);
  useEffect(() => {
    let on = true;
    void import("../lazy/editor").then(({ createEditor }) => {
      if (!on || !host.current) return;
      typed.current = null;
      editor.current = createEditor(host.current, label, last.current.json, last.current.text, last.current.changed && ((next, pasted) => {
        typed.current = next;
        last.current.changed?.(next, pasted);
      }));
      editor.current.setProblem(last.current.problem);
      editor.current.setMarks(last.current.marks);
    });
    return () => {
      on = false;
      editor.current?.destroy();
      editor.current = null;
    };
  }, [label]);
  // Only what comes from outside is written, and before another key can be pressed: later it would delete characters.
  useLayoutEffect(() => {
    if (text === typed.current) return;
    typed.current = null;
    editor.current?.setText(text);
  }, [text]);
  useEffect(() => editor.current?.setJson(json), [json]);
  useEffect(() => editor.current?.setProblem(problem), [problem]);
  useEffect(() => editor.current?.setMarks(marks), [marks]);
  useEffect(() => {
    if (show) editor.current?.show(show.pointer);
  }, [show]);
  return <div class="editor" ref={host} />;
}
