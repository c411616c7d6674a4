/** What a person sees of a page that fails: a page too, which says whether anything has happened. */
import type { ApiError } from '../../domain/errors.ts';
import { BRAND, escapeHtml, type HtmlPage } from './html-pages.ts';

export function failedPage({ code, status, message }: ApiError): HtmlPage {
  const [title, text] =
    code === 'outcome_unknown'
      ? UNKNOWN
      : status === 503
        ? UNAVAILABLE
        : ['Something went wrong', message];
  return {
    title,
    isCard: true,
    body: `${BRAND}<h1>${title}</h1><p role="alert">${escapeHtml(text)}</p>`,
  };
}

/** Forms with the same content take effect once. */
const UNKNOWN = [
  'Not known yet',
  'The connection was lost, so this may or may not have worked. Go back and try again: it happens only once.',
] as const;

const UNAVAILABLE = [
  'Unavailable',
  'Farebox is unavailable right now. Nothing was changed. Go back and try again.',
] as const;
