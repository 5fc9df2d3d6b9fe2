// The gateway's stream of rows: one connection, opened again when it breaks.
export type FeedState = "connecting" | "open" | "lost";

/** What those who follow are given: a row as its JSON, or how many were skipped. */
export type News = { state: FeedState } | { row: string } | { dropped: number };

const LIVE = "/inspector/api/live";
const AGAIN_MS = 1000;
/** After a refusal: a session that ended, too many that look. */
const REFUSED_MS = 5000;

export class Source {
  state: FeedState = "connecting";
  private source: EventSource | null = null;
  private retry: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly tell: (news: News) => void) {}

  open(): void {
    if (this.source) return;
    clearTimeout(this.retry);
    const opened = new EventSource(LIVE);
    this.source = opened;
    let wasOpen = false;
    opened.onopen = () => {
      wasOpen = true;
      this.become("open");
    };
    opened.onerror = () => {
      this.become("lost");
      // The browser tries again by itself after a cut; after a refusal it does not.
      if (opened.readyState !== EventSource.CLOSED) return;
      this.source = null;
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.open(), wasOpen ? AGAIN_MS : REFUSED_MS);
    };
    opened.addEventListener("row", (event) => this.tell({ row: (event as MessageEvent<string>).data }));
    opened.addEventListener("dropped", (event) => {
      const { count } = JSON.parse((event as MessageEvent<string>).data) as { count?: number };
      this.tell({ dropped: count ?? 0 });
    });
  }

  close(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
    this.state = "connecting";
  }

  private become(state: FeedState): void {
    this.state = state;
    this.tell({ state });
  }
}
