/** Tab on a page: whether it reaches every control, and shows where the focus is. */
import type { Page } from 'playwright-core';

/** More than any page has. */
export const TABS_MAX = 150;

/** Presses Tab until it leaves a page that has just been loaded, and returns what is wrong on the way. */
export async function problemsOfTab(page: Page): Promise<readonly string[]> {
  const problems: string[] = [];
  await page.evaluate(EXPECT_CONTROLS);
  let last: string | null = '';
  for (let n = 0; n < TABS_MAX && last !== null; n += 1) {
    await page.keyboard.press('Tab');
    const { name, hidden } = await page.evaluate<Reached>(REACHED);
    if (hidden !== null) problems.push(`the focus is not visible on ${hidden}`);
    last = name;
  }
  const missed = await page.evaluate<readonly string[]>(MISSED);
  return [...problems, ...missed.map((name) => `Tab does not reach ${name}`)];
}

interface Reached {
  /** The control with the focus; null after the last one. */
  readonly name: string | null;
  /** The control that had the focus before, if it looked the same with it as without it. */
  readonly hidden: string | null;
}

/** A control's name within its page. */
export const NAME_OF = `(element) => {
  const text = element.getAttribute('aria-label') || element.textContent || element.value || element.id;
  const all = [...document.querySelectorAll(element.tagName)];
  return element.tagName + ' ' + text.trim().slice(0, 60) + ' #' + all.indexOf(element);
}`;

const CONTROLS = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';

/** Tab reaches only the chosen one of several radio buttons. */
const EXPECT_CONTROLS = `window.expected = [...document.querySelectorAll('${CONTROLS}')]
  .filter((element) => !element.disabled && element.tabIndex >= 0 && element.checkVisibility()
    && !(element.type === 'radio' && !element.checked));
window.tabbed = new Set();`;

/** The controls that Tab has not reached, but for those that the page has replaced meanwhile. */
const MISSED = `window.expected
  .filter((element) => element.isConnected && !window.tabbed.has(element))
  .map(${NAME_OF})`;

/**
 * Compares each control, with what is beside and around it, to itself once Tab has left it. Another control
 * beside it does not count: it looks different because it has the focus then.
 */
const REACHED = `(() => {
  const nameOf = ${NAME_OF};
  const besideOf = ({ nextElementSibling: next }) => (next?.matches('${CONTROLS}') ? null : next);
  const lookOf = (element) => [element, besideOf(element), element.parentElement, element.parentElement?.parentElement]
    .filter((each) => each instanceof Element)
    .map((each) => getComputedStyle(each))
    .map(({ outlineStyle, outlineWidth, borderColor, boxShadow, left }) =>
      [outlineStyle, outlineWidth, borderColor, boxShadow, left].join()).join(';');
  const before = window.reached;
  const element = document.activeElement === document.body ? undefined : document.activeElement;
  // The parts of a date are one control.
  const isLeft = before && before.element !== element && before.element.isConnected;
  const hidden = isLeft && lookOf(before.element) === before.look ? nameOf(before.element) : null;
  if (element) window.tabbed.add(element);
  window.reached = element && { element, look: before?.element === element ? before.look : lookOf(element) };
  return { name: element ? nameOf(element) : null, hidden };
})()`;
