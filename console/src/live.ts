/**
 * Server-sent events, for pages that show what happens. Only while the page can be seen: a browser has few
 * connections to one host, and hidden tabs would use them up.
 */
import { useEffect, useEffectEvent, useState } from 'react';

/**
 * How soon it refreshes again while events keep coming: each pause is twice the last one. Nobody reads a list that is
 * replaced every second, and each refresh is several requests of each open page.
 */
const PAUSE_MS_MIN = 2_000;
const PAUSE_MS_MAX = 8_000;
/** A browser connects again by itself after a broken connection, but not after a refusal. */
const AGAIN_MS = 15_000;

interface Live<Data> {
  readonly path: string;
  readonly event: string;
  readonly isWanted: boolean;
  /** Called with each event. */
  readonly onEvent: (data: Data) => void;
  /** For what the events do not contain: called soon after each, and less often while they keep coming. */
  readonly refresh: () => Promise<unknown>;
}

/**
 * Listens to a stream, which sends the present state at each connection. Returns whether the events arrive;
 * otherwise, poll.
 */
export function useLive<Data>({ path, event, isWanted, onEvent, refresh }: Live<Data>): boolean {
  const [isLive, setIsLive] = useState(false);
  const take = useEffectEvent(onEvent);
  const refreshNow = useEffectEvent(refresh);
  useEffect(() => {
    if (!isWanted) return undefined;
    const refreshSoon = paced(() => refreshNow());
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const close = () => {
      clearTimeout(timer);
      source?.close();
      setIsLive(false);
    };
    const open = () => {
      close();
      if (document.hidden) return;
      const opened = new EventSource(path);
      source = opened;
      opened.addEventListener(event, ({ data }: MessageEvent<string>) => {
        setIsLive(true);
        take(JSON.parse(data) as Data);
        refreshSoon();
      });
      opened.addEventListener('error', () => {
        setIsLive(false);
        if (opened.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN_MS);
      });
    };
    document.addEventListener('visibilitychange', open);
    open();
    return () => {
      document.removeEventListener('visibilitychange', open);
      close();
    };
  }, [path, event, isWanted]);
  return isLive;
}

/**
 * Runs the work at a call, never twice at once, and once more when it was called meanwhile. After a pause
 * without a call, the next one runs it at once.
 */
function paced(work: () => Promise<unknown>): () => void {
  let isDue = false;
  let isBusy = false;
  const run = async () => {
    isBusy = true;
    for (let pauseMs = PAUSE_MS_MIN; isDue; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      isDue = false;
      await work();
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    isBusy = false;
  };
  return () => {
    isDue = true;
    if (!isBusy) void run();
  };
}
