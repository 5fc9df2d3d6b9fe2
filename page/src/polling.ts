// Data that is requested repeatedly while it is shown.

/** Calls at once and then every so often, not while the tab is hidden, but at once when it is seen again. The result stops that. */
export function every(ms: number, load: () => unknown): () => void {
  let missed = false;
  const timer = setInterval(() => {
    if (document.visibilityState === "hidden") missed = true;
    else load();
  }, ms);
  const seen = () => {
    if (document.visibilityState === "hidden" || !missed) return;
    missed = false;
    load();
  };
  document.addEventListener("visibilitychange", seen);
  load();
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
