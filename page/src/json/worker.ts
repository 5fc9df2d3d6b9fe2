// Parses large bodies off the page's thread, so that it can be scrolled meanwhile.
interface Asked {
  id: number;
  text: string;
}

self.onmessage = (event: MessageEvent<Asked>) => {
  const { id, text } = event.data;
  try {
    self.postMessage({ id, value: JSON.parse(text) as unknown });
  } catch (problem) {
    self.postMessage({ id, problem: problem instanceof Error ? problem.message : String(problem) });
  }
};
export {};
