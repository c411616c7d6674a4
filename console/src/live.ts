/**
 * Server-sent events, for pages that show what happens. Only while the page can be seen: a browser has few connections to
 * one host, and hidden tabs would use them up.
 */
import { useEffect, useEffectEvent, useState } from 'react';

/** How often it refreshes at most. */
const REFRESH_MS = 2_000;
/** A browser connects again by itself after a broken connection, but not after a refusal. */
const AGAIN_MS = 15_000;

/** Calls `refresh` at each connection and after each event. Returns whether the events arrive; otherwise, poll. */
export function useLive(
  path: string,
  event: string,
  isWanted: boolean,
  refresh: () => Promise<unknown>,
): boolean {
  const [isLive, setIsLive] = useState(false);
  const refreshNow = useEffectEvent(refresh);
  useEffect(() => {
    if (!isWanted) return undefined;
    const refreshSoon = oneAtATime(() => refreshNow());
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
      opened.addEventListener(event, () => {
        setIsLive(true);
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

/** Runs the work soon after each call, never twice at once, and once more when it was called meanwhile. */
function oneAtATime(work: () => Promise<unknown>): () => void {
  let isDue = false;
  let isBusy = false;
  const run = async () => {
    isBusy = true;
    while (isDue) {
      isDue = false;
      await work();
      await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
    }
    isBusy = false;
  };
  return () => {
    isDue = true;
    if (!isBusy) void run();
  };
}
