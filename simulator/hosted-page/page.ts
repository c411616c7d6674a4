/** The hosted page as HTML: the form of an open session, or the session's result. */
import type Stripe from 'stripe';

const STYLE = `
  :root { color-scheme: light dark; --accent: #5b5bd6; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 12vh auto; padding: 0 1rem; }
  h1 { font-size: 2.2rem; margin: 0; font-variant-numeric: tabular-nums; }
  p { margin: .25rem 0 1rem; }
  label { display: block; margin: 1rem 0; }
  input[type=text] { display: block; width: 100%; box-sizing: border-box; font: inherit; padding: .6rem;
    margin-top: .25rem; border: 1px solid #8888; border-radius: 6px; font-variant-numeric: tabular-nums; }
  button { font: inherit; font-weight: 600; width: 100%; padding: .7rem; border: 0; border-radius: 6px;
    background: var(--accent); color: #fff; cursor: pointer; }
  dl { display: grid; grid-template-columns: auto auto; justify-content: space-between; }
  dd { margin: 0; text-align: right; }
  .quiet { opacity: .75; font-size: .875rem; }
  .error { padding: .6rem; border-radius: 6px; background: #d4333322; border: 1px solid #d43333; }
  code { white-space: nowrap; }
`;

/** `unsafe-inline` is for the one style above. The page has no script. */
export const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
  'X-Frame-Options': 'DENY',
} as const;

export interface PageView {
  readonly title: string;
  readonly offersSave: boolean;
  /** The payer's, as far as it is known. */
  readonly address: Stripe.Address;
  /** The saved cards that the page offers. */
  readonly cards: readonly Stripe.PaymentMethod[];
  /** The error of the attempt that this page answers. */
  readonly problem?: string | undefined;
}

export function sessionPage(session: Stripe.Checkout.Session, view: PageView): string {
  const amount = dollars(session.amount_total ?? 0);
  const isSetup = session.mode === 'setup';
  const heading = `<p>${escape(view.title)}</p>${isSetup ? '' : `<h1>${amount}</h1>`}`;
  if (session.status === 'open') {
    const action = isSetup ? 'Save card' : `Pay ${amount}`;
    return document(action, heading + form(session, view, action));
  }
  if (session.status === 'expired') {
    return document('Expired', `${heading}<p role="status">This payment page has expired.</p>`);
  }
  return document(isSetup ? 'Saved' : 'Paid', heading + completed(session));
}

export function authenticationPage({ amount }: Stripe.PaymentIntent): string {
  return document(
    'Confirm at your bank',
    `<p>Your bank</p><h1>${dollars(amount)}</h1>
    <form method="post">
      <p><button name="result" value="succeeded">Confirm payment</button></p>
      <p><button name="result" value="failed">Refuse</button></p>
    </form>
    <p class="quiet">This is a simulation: no money moves.</p>`,
  );
}

export function messagePage(title: string, message: string): string {
  return document(title, `<h1>${escape(title)}</h1><p>${escape(message)}</p>`);
}

function form(session: Stripe.Checkout.Session, view: PageView, action: string): string {
  const cancel = session.cancel_url
    ? `<p class="quiet"><a href="${escape(session.cancel_url)}">Cancel and go back</a></p>`
    : '';
  const save = view.offersSave
    ? '<label><input type="checkbox" name="save" value="true"> Save this card for later</label>'
    : '';
  return `
    ${view.problem === undefined ? '' : `<p class="error" role="alert">${escape(view.problem)}</p>`}
    <form method="post">
      <label>Card number
        <input type="text" name="card" value="4242 4242 4242 4242" inputmode="numeric"
          autocomplete="off" required>
      </label>
      ${save}
      ${session.automatic_tax.enabled ? addressFields(session, view.address) : ''}
      ${session.custom_text.submit ? `<p class="quiet">${escape(session.custom_text.submit.message)}</p>` : ''}
      <button>${action}</button>
    </form>
    ${view.cards.length === 0 ? '' : savedCards(session, view)}
    ${cancel}
    <p class="quiet">This is a simulation: no money moves. <code>4242 4242 4242 4242</code> pays,
      <code>4000 0000 0000 0002</code> is declined, <code>4000 0000 0000 9995</code> has no funds,
      <code>000123456789</code> is a bank account that pays a little later.</p>`;
}

/** A form of their own: the one above has a card number. */
function savedCards(session: Stripe.Checkout.Session, { cards, address }: PageView): string {
  const buttons = cards.map(
    ({ id, card }) =>
      `<p><button name="saved" value="${escape(id)}">Pay with ${escape(card?.brand ?? 'card')} ending in ${card?.last4}</button></p>`,
  );
  const known = session.automatic_tax.enabled ? addressFields(session, address) : '';
  return `<form method="post">${known}${buttons.join('')}</form>`;
}

/** With the tax that is due there. Stripe's page shows the new total as the payer types; this one has no script. */
function addressFields(
  session: Stripe.Checkout.Session,
  { country, state }: Stripe.Address,
): string {
  const { amount_subtotal, amount_total, total_details } = session;
  return `
      <label>Country <input type="text" name="country" value="${escape(country ?? '')}" required></label>
      <label>State <input type="text" name="state" value="${escape(state ?? '')}"></label>
      <dl>
        <dt>Subtotal</dt><dd>${dollars(amount_subtotal ?? 0)}</dd>
        <dt>Tax</dt><dd>${dollars(total_details?.amount_tax ?? 0)}</dd>
        <dt>Total</dt><dd>${dollars(amount_total ?? 0)}</dd>
      </dl>
      <input type="hidden" name="shown" value="${amount_total ?? 0}">`;
}

function completed(session: Stripe.Checkout.Session): string {
  const message =
    session.mode === 'setup'
      ? 'The card is saved.'
      : session.payment_status === 'paid'
        ? 'Paid. Thank you.'
        : 'Your bank has been asked for the payment. It will arrive a little later.';
  const back = session.success_url
    ? `<p><a href="${escape(successUrl(session))}">Continue</a></p>`
    : '';
  return `<p role="status">${message}</p>${back}`;
}

/** The URL for the customer after the payment, with the session's id inserted. */
export function successUrl(session: Stripe.Checkout.Session): string {
  return (session.success_url ?? '').replaceAll('{CHECKOUT_SESSION_ID}', session.id);
}

function document(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${escape(title)}</title>
  <style>${STYLE}</style>
</head>
<body><main>${body}</main></body>
</html>
`;
}

function dollars(cents: number): string {
  return (cents / 100).toLocaleString('en-US', { style: 'currency', currency: 'USD' });
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
