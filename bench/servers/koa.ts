/**
 * An upper limit: Koa reads the same bodies, answers with as many bytes, and does nothing else. It checks no key and
 * stores nothing.
 */
import type { IncomingMessage } from 'node:http';
import Koa from 'koa';

interface Body {
  readonly tool: string;
  readonly amount: number;
}

const answer = JSON.parse(process.env['ANSWER'] ?? '') as object;

function readJson(request: IncomingMessage): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString())));
    request.on('error', reject);
  });
}

const app = new Koa();
app.use(async (ctx) => {
  const { tool, amount } = (await readJson(ctx.req)) as Body;
  ctx.status = 201;
  ctx.body = { ...answer, tool, amount };
});
const at = { port: Number(process.env['PORT']), host: '127.0.0.1', reusePort: true };
app.listen(at, () => process.send?.({ ready: true }));
process.once('disconnect', () => process.exit());
