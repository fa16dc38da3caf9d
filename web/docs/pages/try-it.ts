/** A form that makes a real request, with the reader's own key. client/try.js brings it to life. */

import type { Operation, Parameter } from '../../../scripts/model/operations.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import type { PageContext } from '../site.ts'

export function tryIt(context: PageContext, operation: Operation): Html {
  const { method, path, parameters, body } = operation
  const isRead = method === 'GET'
  return html`<details class="try" id="try"><summary>Try it</summary>
<form data-try data-method="${method}" data-url="${context.rootLink}${path.slice(1)}">
<p class="quiet">${isRead ? 'This makes a real request with your key.' : html`<strong>This makes a real request and changes real records of your account.</strong>`} The key stays in this tab and goes nowhere but to this server.</p>
<div class="input"><label for="try-key">API key</label><input id="try-key" name="key" type="password" autocomplete="off" spellcheck="false" placeholder="mst_…" required></div>
${parameters.map((parameter) => input(context, parameter))}
${body && html`<div class="input"><label for="try-body">Body</label><textarea id="try-body" name="body" rows="10" spellcheck="false">${JSON.stringify(body.example ?? {}, null, 2)}</textarea></div>`}
<p><button type="submit" class="primary">Send ${method}</button></p>
</form>
<div class="answer" data-answer role="status" hidden></div>
</details>`
}

function input(
  { api }: PageContext,
  { name, in: where, required, schema, example }: Parameter,
): Html {
  const id = `try-${where}-${name.replace(/\W+/g, '-')}`
  const target = api.follow(schema.value)
  const { enum: choices, default: preset } = target
  const value = where === 'path' ? '' : undefined
  const hint = preset ?? (where === 'path' ? example : undefined) ?? hintOf(target, api.follow)
  const control: Content = choices
    ? html`<select id="${id}" name="${name}" data-in="${where}"><option value=""></option>${choices.map((choice) => html`<option>${String(choice)}</option>`)}</select>`
    : html`<input id="${id}" name="${name}" data-in="${where}"${value !== undefined && html` value="${value}"`}${hint !== undefined && html` placeholder="${String(hint)}"`} autocomplete="off" spellcheck="false"${required && html` required`}>`
  return html`<div class="input"><label for="${id}"><code>${name}</code></label>${control}</div>`
}

/** What may be written into a field for a list. */
function hintOf(schema: Schema, follow: (schema: Schema) => Schema): string | undefined {
  return schema.items && follow(schema.items).enum?.slice(0, 2).join(',')
}
