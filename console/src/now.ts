/** The time, for texts that say how long ago something was: they stay true on a page where nothing else changes. */
import { useSyncExternalStore } from 'react';

/** The texts count minutes. */
const TICK_MS = 15_000;

const watchers = new Set<() => void>();
let nowMs = Date.now();

setInterval(() => {
  nowMs = Date.now();
  for (const watcher of watchers) watcher();
}, TICK_MS);

/** Late by `TICK_MS` at most. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => nowMs);
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}
