/** Keeps a page whose loss would lose something: steps back and forward in the history do nothing meanwhile. */
import { useBlocker } from '@tanstack/react-router';

const STEPS: ReadonlySet<string> = new Set(['BACK', 'FORWARD', 'GO']);
/** Links and our own code may change the page: they know of what is on it. */
const isStep = ({ action }: { readonly action: string }) => STEPS.has(action);

/** `asksToLeave`: the browser also asks before it reloads or closes the page. */
export function useNoSteps(isKept: boolean, asksToLeave = false): void {
  useBlocker({ shouldBlockFn: isStep, enableBeforeUnload: asksToLeave, disabled: !isKept });
}
