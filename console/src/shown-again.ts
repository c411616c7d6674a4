/**
 * Back from a page of the payment processor, the browser may show the page as it was left, with a button that waits for
 * that other page.
 */
import { useEffect } from 'react';

/** `reset` stays the same function from one rendering to the next. */
export function useShownAgain(reset: () => void): void {
  useEffect(() => {
    const onShown = ({ persisted }: PageTransitionEvent) => persisted && reset();
    window.addEventListener('pageshow', onShown);
    return () => window.removeEventListener('pageshow', onShown);
  }, [reset]);
}
