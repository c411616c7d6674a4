/**
 * Gives the keyboard focus back where the browser would drop it: a button that waits for its answer is disabled, and
 * the parts of a dialog, of an answered question or of a form that closed are gone. While a button in a dialog waits,
 * the dialog has the focus, so that Tab does not lead to the page behind it.
 */

/** Parts of a page that can take the focus of what was in them. */
const PARTS = 'section, main, [tabindex]';
/** Dialogs, menus and messages. */
const OVERLAYS = '[data-portal]';

interface Place {
  readonly element: HTMLElement;
  /** The innermost first. */
  readonly parts: readonly HTMLElement[];
}

function placeOf(element: HTMLElement): Place {
  const parts: HTMLElement[] = [];
  for (let part = element.parentElement; part; part = part.parentElement) {
    if (part.matches(PARTS)) parts.push(part);
  }
  return { element, parts };
}

/** Whether the element has taken the focus. */
function takesFocus(element: HTMLElement): boolean {
  if (!element.isConnected || element.matches(':disabled')) return false;
  if (element.matches(PARTS) && !element.hasAttribute('tabindex')) element.tabIndex = -1;
  element.focus({ preventScroll: true });
  return document.activeElement === element;
}

function isFocusLost(): boolean {
  const { activeElement } = document;
  return (
    activeElement === null || activeElement === document.body || activeElement.matches(':disabled')
  );
}

function isWaiting(element: HTMLElement): boolean {
  return element.isConnected && element.matches('[data-loading]:disabled');
}

/** For the whole life of the page. */
export function keepFocus(): void {
  let last: Place | undefined;
  let lastOnPage: Place | undefined;
  document.addEventListener('focusin', ({ target }) => {
    if (!(target instanceof HTMLElement)) return;
    last = placeOf(target);
    if (!target.closest(OVERLAYS)) lastOnPage = last;
  });
  document.addEventListener('pointerdown', ({ target }) => {
    // A click beside everything gives the focus up.
    if (!last?.element.contains(target as Node)) last = undefined;
  });
  /** The dialog that has the focus in place of its waiting button. */
  let holder: HTMLElement | undefined;
  const giveBack = () => {
    const isHeld = holder !== undefined && document.activeElement === holder;
    if (!last || !(isHeld || isFocusLost())) return;
    if (isWaiting(last.element)) {
      if (isHeld) return;
      const waiting = last;
      holder = last.parts.find((part) => part.matches('[role="dialog"]'));
      holder?.focus({ preventScroll: true });
      last = waiting;
      return;
    }
    holder = undefined;
    const places = [last, ...(lastOnPage ? [lastOnPage] : [])];
    places.flatMap(({ element, parts }) => [element, ...parts]).some(takesFocus);
  };
  new MutationObserver(giveBack).observe(document.body, {
    subtree: true,
    childList: true,
    attributeFilter: ['disabled', 'data-loading'],
  });
}
