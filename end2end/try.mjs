import { chromium } from '@playwright/test';
const base = process.env.BASE ?? 'http://127.0.0.1:3100';
const b = await chromium.launch({ executablePath: '/usr/bin/chromium', args: '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'.split(' ') });
const p = await b.newPage({ viewport: { width: 1440, height: 900 } });
p.on('console', m => console.log('console', m.type(), m.text()));
p.on('pageerror', e => console.log('pageerror', e.message));
p.on('requestfailed', r => console.log('failed', r.url(), r.failure()?.errorText));
await p.goto(base + '/');
await p.waitForSelector('html[data-hydrated]');
await p.screenshot({ path: '/tmp/shots/home.png' });
await p.getByRole('textbox', { name: 'Message' }).fill('teach me fractions');
await p.getByRole('button', { name: 'Start' }).click();
await p.waitForURL(/chat/);
await p.waitForTimeout(300);
await p.screenshot({ path: '/tmp/shots/c1.png' });
await p.getByRole('form', { name: 'Question' }).waitFor();
await p.screenshot({ path: '/tmp/shots/c2.png' });
console.log(await p.locator('main').getAttribute('data-status'), p.url());
let n = 0;
while (n++ < 14) {
  const form = p.getByRole('form', { name: 'Question' });
  const plan = p.getByRole('region', { name: 'Plan' });
  await p.waitForFunction(() => document.querySelector('main')?.dataset.status === 'ready', null, { timeout: 20000 });
  if (await plan.getByRole('button', { name: 'Accept plan' }).count()) { await p.screenshot({ path: '/tmp/shots/plan.png' }); await plan.getByRole('button', { name: 'Accept plan' }).click(); await p.waitForTimeout(100); continue; }
  if (!(await form.count())) { console.log('no form'); break; }
  const opt = form.locator('input[type=radio],input[type=checkbox]').first();
  if (await opt.count()) await opt.click(); else await form.locator('input[type=text]').fill('3/4');
  if (n === 10) await p.screenshot({ path: '/tmp/shots/q10.png' });
  await form.getByRole('button', { name: 'Answer' }).click();
  await p.waitForTimeout(150);
}
await p.waitForTimeout(1500);
await p.screenshot({ path: '/tmp/shots/c3.png' });
await p.emulateMedia({ colorScheme: 'dark' });
await p.screenshot({ path: '/tmp/shots/c3dark.png' });
await p.emulateMedia({ colorScheme: 'light' });
await p.setViewportSize({ width: 390, height: 844 });
await p.waitForTimeout(300);
await p.screenshot({ path: '/tmp/shots/phone.png' });
console.log(p.url());
await b.close();
