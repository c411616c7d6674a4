/** Shows mails that were kept instead of sent, if so configured. `npm start` uses this in place of a mail server. */
import type { Middleware } from 'koa';
import { isLoopback } from '../../console/origins.ts';
import { ApiError } from '../../domain/errors.ts';
import { listMails } from '../../store/console/mails.ts';
import type { Api } from '../services.ts';
import { escapeHtml, respondPage } from './html-pages.ts';

export function getDevMail(api: Api): Middleware {
  return async (ctx) => {
    // At another name, the page of a stranger whose name leads to this address could read the mails.
    const isOurs =
      isLoopback(ctx.hostname) || ctx.hostname === new URL(api.config.consoleUrl).hostname;
    if (!api.config.mail.isKept || !isOurs)
      throw new ApiError('not_found', 'This path does not exist.');
    const mails = await listMails(api.database);
    const shown = mails.map(
      ({ recipient, subject, body, createdAt }) =>
        `<article class="mail"><h2>${escapeHtml(subject)}</h2><p class="quiet">To ${escapeHtml(recipient)}, ` +
        `${createdAt}</p><pre>${withLinks(escapeHtml(body))}</pre></article>`,
    );
    respondPage(ctx, 200, {
      title: 'Emails',
      body: `<h1>Emails</h1><p>No mail server is configured, so emails appear here.</p>${shown.join('') || '<p>No emails yet.</p>'}`,
    });
  };
}

function withLinks(html: string): string {
  return html.replaceAll(/https?:\/\/\S+/g, (url) => `<a href="${url}">${url}</a>`);
}
