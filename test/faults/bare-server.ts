/** A server that reads each request's JSON, sends it back and does nothing else. The port comes from PORT. */
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const text = Buffer.concat(chunks).toString();
    response.setHeader('Content-Type', 'application/json');
    response.end(text === '' ? '{}' : JSON.stringify(JSON.parse(text)));
  });
});
server.listen(Number(process.env['PORT']), '127.0.0.1', () => process.send?.({ ready: true }));
process.once('disconnect', () => process.exit());
