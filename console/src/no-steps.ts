/** Keeps a page that must not be lost: going back or forward in the history does nothing meanwhile. */
import { useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';
import { isLeaving } from './session.ts';

const STEPS: ReadonlySet<string> = new Set(['BACK', 'FORWARD', 'GO']);

/** `asksToLeave`: the browser also asks before it reloads or closes the page, unless the page itself leaves. */
export function useNoSteps(isKept: boolean, asksToLeave = false): void {
  const { history } = useRouter();
  useEffect(() => {
    if (!isKept) return;
    // Links and our own code may change the page: they know of what is on it.
    const blockerFn = ({ action }: { readonly action: string }) => STEPS.has(action);
    return history.block({ blockerFn, enableBeforeUnload: () => asksToLeave && !isLeaving() });
  }, [isKept, asksToLeave, history]);
}
